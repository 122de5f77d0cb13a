"""The verdict on an execution: totals of its rows, and its end compared with its deadline. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from lake.errors import TerminalError
from lake.ledger import ManifestCounts, ManifestRow, State
from lake.settings import NotifyQuarantine
from lake.texts import format_count, printable, with_options
from router.settle.published import MAX_NAMED_FILES, DamagedObject, UnreadableFile

MAX_NAMED_SHARES = 3
"""Maximum number of datasets that the message names."""
MAX_NAMED_DATASETS = 200
"""Maximum number of datasets in a verdict document, those with most quarantined lines first."""


PUBLISHER_PRESUMED_DEAD_AFTER = timedelta(minutes=10)
"""After this time in PUBLISHING a manifest is not being worked on: the next claim, plan or sweep finishes it."""
MAX_NAMED_MANIFESTS = 100
"""Maximum number of manifests in a verdict document that are not DONE; all are counted."""


@dataclass(slots=True, kw_only=True)
class Tally(ManifestCounts):
    """Totals of an execution; its size depends on the number of datasets, not on the number of rows."""

    now: datetime
    """Aware."""
    in_progress: int = 0
    """Open manifests that a process may be working on: they have a live lease, or a publish that began recently."""
    damaged_objects: int = 0
    damaged: list[DamagedObject] = field(default_factory=list)
    """The first ``MAX_NAMED_OBJECTS`` damaged objects."""
    not_done: list[ManifestRow] = field(default_factory=list)
    """The first ``MAX_NAMED_MANIFESTS`` manifests that are not DONE."""
    datasets: defaultdict[str, ManifestCounts] = field(default_factory=lambda: defaultdict(ManifestCounts))
    """Counts by dataset; files, bytes and lines, as in all totals, only of DONE manifests."""
    unreadable: list[ManifestRow] = field(default_factory=list)
    """The first ``MAX_NAMED_FILES`` DONE manifests with unreadable files."""
    first_failed: ManifestRow | None = None
    first_open: ManifestRow | None = None
    """The first open manifest with a reason, if any: a run that does not begin records it only in one manifest."""
    lost: int = 0
    """Number of manifests with damaged or missing rows; they count as open."""
    first_lost: TerminalError | None = None

    def add(self, row: ManifestRow) -> None:
        dataset = self.datasets[row.partition.dataset]
        dataset.count_state(row)
        self.count_state(row)
        if row.state == State.DONE:
            assert row.published is not None
            dataset.count_files(row)
            self.count_files(row)
            if row.published.totals.failed_files and len(self.unreadable) < MAX_NAMED_FILES:
                self.unreadable.append(row)
            return
        if len(self.not_done) < MAX_NAMED_MANIFESTS:
            self.not_done.append(row)
        if row.state == State.FAILED:
            self.first_failed = self.first_failed or row
        if row.open:
            publishes_for = self.now - datetime.fromisoformat(row.changed_at)
            is_publishing = row.state == State.PUBLISHING and publishes_for < PUBLISHER_PRESUMED_DEAD_AFTER
            self.in_progress += is_publishing or row.has_live_lease(self.now)
            if self.first_open is None or (self.first_open.reason is None and row.reason is not None):
                self.first_open = row

    def add_lost(self, manifests: int, error: TerminalError) -> None:
        self.open += manifests
        self.lost += manifests
        self.first_lost = self.first_lost or error

    def above(self, share: float) -> list[tuple[float, str]]:
        """Shares and names of the datasets with more than ``share`` in the quarantine, the largest share first."""
        found = [(counts.quarantined_share, name) for name, counts in self.datasets.items()]
        return sorted((item for item in found if item[0] > share), key=lambda item: (-item[0], item[1]))

    def datasets_to_json(self) -> list[dict[str, Any]]:
        order = sorted(self.datasets.items(), key=lambda item: (-item[1].rejects.total(), -item[1].bytes, item[0]))
        return [
            {"dataset": name, **asdict(counts), "rejects": dict(sorted(counts.rejects.items()))}
            for name, counts in order[:MAX_NAMED_DATASETS]
        ]


MAX_QUOTED_CHARACTERS = 1000
"""Maximum length of a reason in the message, which passes through the state machine to the topic and to the cause of
its end."""


class ExecutionOutcome(StrEnum):
    SUCCEEDED = "SUCCEEDED"
    """All manifests are DONE, and every line became a row."""
    SUCCEEDED_WITH_QUARANTINE = "SUCCEEDED_WITH_QUARANTINE"
    """All manifests are DONE; lines or whole files are in the quarantine."""
    FAILED = "FAILED"
    """A manifest is FAILED, or is open and no process works on it; or a published object is missing or differs."""
    EMPTY = "EMPTY"
    """The execution had no manifests, or has none left: all were promoted or queued again since its plan."""
    OPEN = "OPEN"
    """A manifest is still being worked on; settle must be called again."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome with the number of manifests by state, and totals of the DONE manifests."""

    outcome: ExecutionOutcome
    done: int
    failed: int
    open: int
    rows: int
    rejects: int
    failed_files: int
    damaged_objects: int
    """Objects of DONE manifests that are missing or differ from what was published."""
    datasets_above_share: int
    """Number of datasets with a larger share in the quarantine than ``alarms.max_quarantined_share``."""
    message: str
    """A sentence for people."""


def judge_execution(tally: Tally, max_quarantined_share: float = 1, planned: int = 0) -> Verdict:
    """Judge the totals. The message names datasets with more than ``max_quarantined_share`` in the quarantine.

    ``planned`` is the number of manifests in the plan.
    """
    above = tally.above(max_quarantined_share)
    rejects = tally.rejects.total()
    if not tally.done + tally.failed + tally.open:
        left = format_count(planned, "manifest was", "manifests were")
        message = f"its {left} promoted or queued again meanwhile" if planned else "nothing was waiting"
        outcome = ExecutionOutcome.EMPTY
    elif tally.in_progress:
        working = format_count(tally.in_progress, "manifest is", "manifests are")
        outcome, message = ExecutionOutcome.OPEN, f"{working} still being worked on"
    elif tally.failed or tally.open or tally.damaged_objects:
        outcome, message = ExecutionOutcome.FAILED, _failure(tally)
    else:
        quarantined = rejects or tally.failed_files
        outcome = ExecutionOutcome.SUCCEEDED_WITH_QUARANTINE if quarantined else ExecutionOutcome.SUCCEEDED
        done = "its manifest is" if tally.done == 1 else f"all {format_count(tally.done, 'manifest')} are"
        message = f"{done} done: {format_count(tally.rows, 'row')}"
    if rejects:
        lines = format_count(rejects, "line could not become a row and is", "lines could not become a row and are")
        message += f"; {lines} in the quarantine"
    if tally.failed_files:
        files = format_count(tally.failed_files, "file could not be read and is", "files could not be read and are")
        message += f"; {files} in the quarantine by reference"
    if above:
        named = ", ".join(f"{name}: {100 * share:.3g} %" for share, name in above[:MAX_NAMED_SHARES])
        more = f" and {len(above) - MAX_NAMED_SHARES:,} more" if len(above) > MAX_NAMED_SHARES else ""
        datasets = format_count(len(above), "dataset")
        message += f"; more than alarms.max_quarantined_share of {datasets} is in the quarantine ({named}{more})"
    return Verdict(
        outcome,
        done=tally.done,
        failed=tally.failed,
        open=tally.open,
        rows=tally.rows,
        rejects=rejects,
        failed_files=tally.failed_files,
        damaged_objects=tally.damaged_objects,
        datasets_above_share=len(above),
        message=message,
    )


def should_notify(verdict: Verdict, notify_quarantine: str) -> bool:
    """Whether to notify people of the verdict.

    ``notify_quarantine`` is the setting ``alarms.notify_quarantine``. It decides only about executions that succeeded
    with a quarantine; executions that did not succeed are always reported.
    """
    if verdict.outcome == ExecutionOutcome.SUCCEEDED_WITH_QUARANTINE:
        if notify_quarantine == NotifyQuarantine.NEVER:
            return False
        return notify_quarantine == NotifyQuarantine.LINES or verdict.failed_files > 0
    return verdict.outcome not in (ExecutionOutcome.SUCCEEDED, ExecutionOutcome.EMPTY)


def _failure(tally: Tally) -> str:
    parts = []
    if tally.damaged:
        first = tally.damaged[0]
        parts.append(
            f"{format_count(tally.damaged_objects, 'published object is', 'published objects are')} damaged (first: "
            f"{first.uri} {_cut(first.problem)}): "
            "the verdict document names them; find out who changed them, then restore them or run "
            f"'hybrid-router reprocess --manifest {first.manifest} --all'"
        )
    if tally.first_failed is not None:
        row = tally.first_failed
        parts.append(f"{format_count(tally.failed, 'manifest')} failed (first: {row.id}, {_cut(str(row.reason))})")
    if tally.lost:
        rows = format_count(
            tally.lost, "manifest has no row that can be used", "manifests have no row that can be used"
        )
        parts.append(f"{rows} (first: {_cut(str(tally.first_lost))})")
    if tally.first_open is not None:
        row = tally.first_open
        why = f", {_cut(row.reason)}" if row.reason else ""
        parts.append(
            f"{format_count(tally.open, 'manifest is', 'manifests are')} not done (first: {row.id}, {row.state}{why}): "
            "run 'hybrid-router overnight' to convert them"
        )
    return "; ".join(parts)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_QUOTED_CHARACTERS else f"{text[:MAX_QUOTED_CHARACTERS]}..."


def minutes_late(plan: Mapping[str, Any], ended: datetime) -> int:
    """Whole minutes from the deadline of an execution's plan until ``ended`` (aware); 0 if it is not late."""
    late = ended - datetime.fromisoformat(plan["deadline"]) if "deadline" in plan else timedelta()
    return max(late // timedelta(minutes=1), 0)


MAX_LISTED_FILES = 10
"""Maximum number of unreadable files in the text; the verdict document names more."""


def format_notification(execution: str, verdict: Verdict, details: Sequence[str], *, stage: str) -> str:
    """Verdict, counts, and next steps with their commands; plain text for an email.

    ``details`` are lines about the deadline and the quarantine, after the counts. ``stage`` is the name of the
    deployment for the command line.
    """
    place = f" --stage {stage}"
    lines = [
        f"Execution {execution} of overnight, stage {stage}: {verdict.outcome}",
        # A manifest's reason can name a file.
        f"{printable(with_options(verdict.message, place))}.",
        "",
        f"Manifests: {verdict.done} done, {verdict.failed} failed, {verdict.open} open.",
        f"Published: {format_count(verdict.rows, 'row')}; in the quarantine: {format_count(verdict.rejects, 'line')}, "
        f"{format_count(verdict.failed_files, 'file')}.",
        f"Damaged objects: {verdict.damaged_objects}.",
        *(with_options(line, place) for line in details),
        "",
        "What to do:",
        f"- See its datasets, what failed and why, and the logs: hybrid-router night {execution} --stage {stage}",
        *(f"- {step}" for step in _steps(verdict, stage)),
    ]
    return "\n".join(lines)


def format_quarantine(rejects: Mapping[str, int], files: Sequence[UnreadableFile]) -> list[str]:
    """Lines with the counts of quarantined lines by reason, most frequent first, and the first unreadable files."""
    reasons = sorted(rejects.items(), key=lambda item: (-item[1], item[0]))
    lines = [f"Quarantined lines: {', '.join(f'{count} {reason}' for reason, count in reasons)}."] if reasons else []
    lines += [f"Unreadable: {printable(file.uri)}: {printable(file.reason)}" for file in files[:MAX_LISTED_FILES]]
    return lines


def _steps(verdict: Verdict, stage: str) -> list[str]:
    """Steps that the message lacks: it already has commands for damaged objects and for manifests that are not done."""
    steps = []
    if verdict.failed:
        command = f"hybrid-router reprocess --manifest <id> --stage {stage}"
        steps.append(f"Remove the causes, then have the failed manifests converted again: {command}")
    if verdict.outcome == ExecutionOutcome.OPEN:
        steps.append(f"Wait until the other run ends, and look at its progress: hybrid-router status --stage {stage}")
    if verdict.rejects or verdict.failed_files:
        steps.append(f"See what is in the quarantine: hybrid-router quarantine ls --stage {stage}")
        steps.append(f"See what happened to one file: hybrid-router explain s3://<bucket>/<key> --stage {stage}")
    if verdict.failed_files:
        command = f"hybrid-router reprocess s3://<bucket>/<key> --stage {stage}"
        steps.append(f"When a file can be read, have its manifest converted again: {command}")
    return steps
