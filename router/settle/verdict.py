"""The verdict on an execution: what its rows add up to, and how it has ended compared with its deadline. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from lake.errors import TerminalError
from lake.ledger import ConvertedCounts, ManifestCounts, ManifestRow, State
from lake.settings import NotifyQuarantine
from lake.texts import format_count, printable, with_options
from router.settle.published import MAX_NAMED_FILES, MAX_NAMED_OBJECTS, Damage, DamagedObject, UnreadableFile

MAX_NAMED_SHARES = 3
"""Maximum number of datasets that the message names."""
MAX_NAMED_DATASETS = 200
"""Maximum number of datasets in a verdict document; those with the most quarantined lines come first."""


@dataclass(slots=True, kw_only=True)
class DatasetTally(ConvertedCounts):
    """The manifests of one dataset; files, bytes and lines are those of its DONE ones."""

    dataset: str
    bytes: int = 0


PUBLISHER_PRESUMED_DEAD_AFTER = timedelta(minutes=10)
"""A manifest that has been PUBLISHING for longer is not being worked on: the next claim, plan or sweep finishes it."""
MAX_NAMED_MANIFESTS = 100
"""Maximum number of manifests that are not DONE that a verdict document names; all of them are counted."""


@dataclass(slots=True, kw_only=True)
class Tally(ManifestCounts):
    """Totals of an execution; the size depends on the number of datasets, not of rows."""

    now: datetime
    """Aware."""
    worked_on: int = 0
    """Open manifests that a process may be working on: a live lease, or a publish that began recently."""
    damaged_objects: int = 0
    damaged: list[DamagedObject] = field(default_factory=list)
    """The first ``MAX_NAMED_OBJECTS``."""
    not_done: list[ManifestRow] = field(default_factory=list)
    """The first ``MAX_NAMED_MANIFESTS``."""
    datasets: dict[str, DatasetTally] = field(default_factory=dict)
    unreadable: list[ManifestRow] = field(default_factory=list)
    """The first ``MAX_NAMED_FILES`` DONE manifests with files that could not be read."""
    first_failed: ManifestRow | None = None
    first_open: ManifestRow | None = None
    """The first one with a reason, if one has any: a run that does not begin records it in one manifest only."""
    lost: int = 0
    """Manifests whose rows are damaged or missing; they count as open."""
    first_lost: TerminalError | None = None

    def add(self, row: ManifestRow) -> None:
        name = row.partition.dataset
        dataset = self.datasets.setdefault(name, DatasetTally(dataset=name))
        dataset.count_state(row)
        self.count_state(row)
        if row.state == State.DONE:
            assert row.published is not None
            totals = row.published.totals
            dataset.bytes += row.bytes
            dataset.count_converted(row, totals)
            self.count_totals(totals)
            if totals.failed_files and len(self.unreadable) < MAX_NAMED_FILES:
                self.unreadable.append(row)
            return
        if len(self.not_done) < MAX_NAMED_MANIFESTS:
            self.not_done.append(row)
        if row.state == State.FAILED:
            self.first_failed = self.first_failed or row
        if row.open:
            publishes_for = self.now - datetime.fromisoformat(row.changed_at)
            is_publishing = row.state == State.PUBLISHING and publishes_for < PUBLISHER_PRESUMED_DEAD_AFTER
            self.worked_on += is_publishing or row.has_live_lease(self.now)
            if self.first_open is None or (self.first_open.reason is None and row.reason is not None):
                self.first_open = row

    def add_lost(self, manifests: int, error: TerminalError) -> None:
        self.open += manifests
        self.lost += manifests
        self.first_lost = self.first_lost or error

    def add_damage(self, damage: Damage) -> None:
        self.damaged_objects += damage.objects
        self.damaged += damage.named[: MAX_NAMED_OBJECTS - len(self.damaged)]

    def above(self, share: float) -> list[DatasetTally]:
        """Datasets of which more than ``share`` is in the quarantine, the largest share first."""
        found = [tally for tally in self.datasets.values() if tally.quarantined_share > share]
        return sorted(found, key=lambda tally: (-tally.quarantined_share, tally.dataset))

    def datasets_to_json(self) -> list[dict[str, Any]]:
        order = sorted(self.datasets.values(), key=lambda tally: (-tally.rejects.total(), -tally.bytes, tally.dataset))
        return [
            {**asdict(tally), "rejects": dict(sorted(tally.rejects.items()))} for tally in order[:MAX_NAMED_DATASETS]
        ]


MAX_QUOTED_CHARACTERS = 1000
"""Maximum length of a reason in the message, which goes through the state machine, to the topic and into the cause of
its end."""


class ExecutionOutcome(StrEnum):
    SUCCEEDED = "SUCCEEDED"
    """All its manifests are DONE, and every line became a row."""
    SUCCEEDED_WITH_QUARANTINE = "SUCCEEDED_WITH_QUARANTINE"
    """All its manifests are DONE; lines or whole files are in the quarantine."""
    FAILED = "FAILED"
    """A manifest is FAILED, or is open and no process works on it; or a published object is missing or differs."""
    EMPTY = "EMPTY"
    """It had no manifests, or has none left: each was promoted or queued again since its plan."""
    OPEN = "OPEN"
    """A manifest is still being worked on: ask again later."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Numbers of manifests by state, and totals of the DONE ones."""

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
    """Datasets of which a larger share is in the quarantine than ``alarms.max_quarantined_share``."""
    message: str
    """A sentence for people."""


def judge(tally: Tally, max_quarantined_share: float = 1, planned: int = 0) -> Verdict:
    """The verdict on what was added up; the message names datasets of which a larger share is in the quarantine.

    ``planned``: number of manifests of the plan.
    """
    above = tally.above(max_quarantined_share)
    rejects = tally.rejects.total()
    if not tally.done + tally.failed + tally.open:
        left = format_count(planned, "manifest was", "manifests were")
        message = f"its {left} promoted or queued again meanwhile" if planned else "nothing was waiting"
        outcome = ExecutionOutcome.EMPTY
    elif tally.worked_on:
        working = format_count(tally.worked_on, "manifest is", "manifests are")
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
        named = ", ".join(f"{item.dataset}: {100 * item.quarantined_share:.3g} %" for item in above[:MAX_NAMED_SHARES])
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
    """Whether a person is notified of the verdict.

    ``notify_quarantine``: the setting ``alarms.notify_quarantine``. It decides about executions that succeeded; all
    others are reported.
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


@dataclass(frozen=True, slots=True)
class NightOutcome:
    """An execution compared with its plan."""

    planned_end: str | None
    """ISO 8601, UTC; None: no plan was recorded, and so there is no deadline."""
    deadline: str | None
    late_minutes: int
    """How much later than the deadline it has ended, in whole minutes; 0: it has not."""


def read_night_outcome(row: Mapping[str, Any], ended: datetime) -> NightOutcome:
    """The outcome by the execution's row; ``ended`` is aware."""
    plan = row.get("plan", {})
    deadline = plan.get("deadline")
    late = ended - datetime.fromisoformat(deadline) if deadline else timedelta()
    return NightOutcome(plan.get("ends_at"), deadline, max(late // timedelta(minutes=1), 0))


MAX_LISTED_FILES = 10
"""Maximum number of unreadable files in the text; the verdict document names more of them."""


def format_notification(execution: str, verdict: Verdict, details: Sequence[str], *, stage: str) -> str:
    """Verdict, counts, and what to do next with the commands for it; plain text for an email.

    ``details``: lines about the deadline and the quarantine, after the counts. ``stage``: name of the deployment, as
    the command line takes it.
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
    """Lines that name the quarantined lines by reason, the most frequent first, and the first unreadable files."""
    reasons = sorted(rejects.items(), key=lambda item: (-item[1], item[0]))
    lines = [f"Quarantined lines: {', '.join(f'{count} {reason}' for reason, count in reasons)}."] if reasons else []
    lines += [f"Unreadable: {printable(file.uri)}: {printable(file.reason)}" for file in files[:MAX_LISTED_FILES]]
    return lines


def _steps(verdict: Verdict, stage: str) -> list[str]:
    """What the message does not say: it has the commands for damaged objects and for what is not done."""
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
