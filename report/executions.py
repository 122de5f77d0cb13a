"""Executions in order of time: outcome and reason of each, and its plan compared with its outcome. Pure."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from lake.engines.description import MICRO
from lake.texts import format_count, format_dollars, format_duration, format_instant, format_known, format_size
from report.figures import FAILED, NOT_SETTLED, OPEN, ExecutionFacts
from report.html import reason_line, safe

QUIET_OUTCOMES = ("SUCCEEDED", "EMPTY")
"""Outcomes after which nothing is left to do, and whose message only repeats the figures."""
SCROLLED_FROM = 8
"""Number of executions from which the list scrolls in a box, so that it does not push away what follows."""


def badge(outcome: str, label: str = "") -> str:
    """The outcome, or ``label``, in the outcome's colour."""
    kind = "bad" if outcome == FAILED else "good" if outcome in QUIET_OUTCOMES else "waiting"
    return f'<span class="badge {kind}">{safe(label or outcome)}</span>'


def outcome_badges(counts: Counter[str]) -> str:
    """A badge for each outcome, with its number if there are several executions: failed, then open, then others."""
    order = sorted(counts, key=lambda name: (name != FAILED, name not in (OPEN, NOT_SETTLED), name))
    return " ".join(badge(name, f"{counts[name]:,} {name}" if counts.total() > 1 else "") for name in order)


def began(execution: ExecutionFacts) -> float:
    """When it was planned or its first job run began, in seconds since the epoch; 0 if neither is known."""
    if (planned_at := execution.recorded.get("planned_at")) is not None:
        return datetime.fromisoformat(planned_at).timestamp()
    return min((run.start for run in execution.job_runs), default=0.0)


def execution_list(executions: Sequence[ExecutionFacts], *, with_reasons: bool) -> str:
    """The executions in order of time; plan and outcome of each are folded unless there is only one.

    ``with_reasons`` is false if the page already shows the message of the only one.
    """
    in_order = sorted(executions, key=lambda item: (began(item), item.name))
    is_open = len(in_order) == 1
    parts = "".join(_block(item, is_open=is_open, with_reason=with_reasons) for item in in_order)
    box = ' class="scrolled" tabindex="0"' if len(in_order) >= SCROLLED_FROM else ""
    return f"<div{box}>{parts}</div>"


def _block(execution: ExecutionFacts, *, is_open: bool, with_reason: bool) -> str:
    outcome, recorded, runs = execution.outcome, execution.recorded, execution.job_runs
    start = began(execution)
    facts = [
        f"{recorded['rows']:,} rows" if "rows" in recorded else "",
        format_size(sum(run.bytes for run in runs)) if runs else "",
        format_duration(max(run.end for run in runs) - start) if runs else "",
        format_dollars(sum(run.micro_dollars for run in runs) / MICRO),
    ]
    message = str(recorded.get("message", "")) if with_reason and outcome not in QUIET_OUTCOMES else ""
    return (
        f'<details class="execution"{" open" if is_open else ""}><summary>'
        f"<b>{format_instant(start)[:16] if start else 'time unknown'}</b> {badge(outcome)} "
        f'<span class="faint">{" · ".join(filter(None, facts))}</span>{reason_line(message)}</summary>'
        f'<p class="id">{safe(execution.name)}</p>{plan_beside_outcome(execution)}</details>'
    )


def plan_beside_outcome(execution: ExecutionFacts) -> str:
    recorded, runs = execution.recorded, execution.job_runs
    manifests = sum(recorded[name] for name in ("done", "failed", "open")) if "outcome" in recorded else None
    files, size = (sum(run.files for run in runs), sum(run.bytes for run in runs)) if runs else (None, None)
    start, end = began(execution), max((run.end for run in runs), default=None)
    planned_end = datetime.fromisoformat(recorded["ends_at"]).timestamp() if "ends_at" in recorded else None
    planned_seconds, seconds = (at - start if at and start else None for at in (planned_end, end))
    dollars = sum(run.micro_dollars for run in runs)
    lines = [
        ("engine", str(recorded.get("engine", "")), ", ".join(sorted({run.engine for run in runs}))),
        _fact("runs; job runs", "{:,}".format, recorded.get("runs"), len(runs)),
        _fact("manifests", "{:,}".format, recorded.get("manifests"), manifests),
        _fact("files", "{:,}".format, recorded.get("files"), files),
        _fact("bytes", format_size, recorded.get("bytes"), size),
        _fact("time", format_duration, planned_seconds, seconds),
        _fact("end", format_instant, planned_end, end),
        ("deadline", format_known(format_instant, recorded.get("deadline")), deadline_kept(execution)),
        _fact("dollars", lambda micro: format_dollars(micro / MICRO), recorded.get("micro_dollars"), dollars),
        _fact("rows", "{:,}".format, None, recorded.get("rows")),
        _fact("quarantined lines", "{:,}".format, None, recorded.get("rejects")),
        _fact("unreadable files", "{:,}".format, None, recorded.get("failed_files")),
        _fact("failed manifests", "{:,}".format, None, recorded.get("failed")),
        _fact("damaged objects", "{:,}".format, None, recorded.get("damaged_objects")),
    ]
    # It is not sorted, and fits a phone.
    head = '<th scope="col">planned</th><th scope="col">outcome</th>'
    body = "".join(
        f'<tr><th scope="row">{safe(name)}</th><td>{safe(planned)}</td><td>{safe(actual)}</td></tr>'
        for name, planned, actual in lines
    )
    return f'<table class="facts"><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>'


def _fact(name: str, form: Callable[[Any], str], planned: object, actual: object) -> tuple[str, str, str]:
    return name, format_known(form, planned), format_known(form, actual)


def deadline_kept(execution: ExecutionFacts) -> str:
    """Whether it ended in time with all manifests done; an execution that failed has not met its deadline."""
    deadline, outcome = execution.recorded.get("deadline"), execution.outcome
    if deadline is None or not execution.job_runs:
        return ""
    if outcome == FAILED:
        return "not met: it failed"
    if outcome in (OPEN, NOT_SETTLED):
        return NOT_SETTLED
    late = max(run.end for run in execution.job_runs) - datetime.fromisoformat(deadline).timestamp()
    # In whole minutes, as in the verdict.
    return f"{format_count(int(late // 60), 'minute')} late" if late >= 60 else "met"
