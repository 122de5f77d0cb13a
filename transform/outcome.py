"""The outcome of a conversion for each manifest, and its lines in a job's log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake.commit import CommitDocument
from lake.ledger import CostShare, State
from lake.texts import format_count

if TYPE_CHECKING:
    from transform.give_up import EnvironmentFault

HELD = "HELD"
"""Another run has a live lease on the manifest; it can be claimed later."""
WAITING = "WAITING"
"""This run can do nothing more for the manifest, which is not at fault; a later run or the sweep finishes it."""
UNKNOWN = "UNKNOWN"
ALARM = "ALARM"
"""First word of a log message that a person must read; ``infra/log_groups.py`` filters the log for it."""
GIVEN_UP = "given up after"
"""Beginning of a poison manifest's reason; a promoted manifest has another reason."""
TERMINAL_MANIFEST_STATES = frozenset({State.DONE, State.FAILED, State.SUPERSEDED, State.ABANDONED})


@dataclass(frozen=True, slots=True)
class ConversionOutcome:
    """What one call of ``convert`` achieved for one manifest."""

    manifest: str
    state: str
    """A terminal state of the ledger, ``HELD``, ``WAITING`` or ``UNKNOWN``."""
    rows: int = 0
    """Rows published by this call; 0 if the manifest was already DONE."""
    rejects: int = 0
    reason: str | None = None
    fault: EnvironmentFault | None = None
    """Why it is WAITING: no attempt was used up, and nothing of the manifest was left out."""
    successors: tuple[str, ...] = ()
    """Successors of the manifest that the same run must convert as well."""

    converted: CostShare | None = None
    """What this call published, for the cost of the job run; the dollars are not known yet."""

    @property
    def unanswered(self) -> bool:
        """Whether load or network keeps it WAITING: the source of the manifest will offer it again."""
        return self.fault is not None and self.fault.passing

    @property
    def terminal(self) -> bool:
        """Whether no work is left on this manifest; its successors are separate manifests."""
        return self.state in TERMINAL_MANIFEST_STATES


def done_outcome(document: CommitDocument) -> ConversionOutcome:
    """The outcome of a manifest that this run has converted and published."""
    failed = [source for source in document.sources if source.failed is not None]
    reason = (
        f"{format_count(len(failed), 'file')} failed (first: {failed[0].uri}: {failed[0].failed})" if failed else None
    )
    converted = CostShare(
        document.partition.dataset,
        0,
        sum(source.size for source in document.sources),
        len(document.sources),
        1,
        document.task_milliseconds,
        len(document.written),
        sum(item.size for item in document.written),
    )
    rejects = document.rejects.total()
    return ConversionOutcome(document.manifest, State.DONE, document.rows, rejects, reason, converted=converted)


def format_outcome(outcome: ConversionOutcome) -> str:
    reason = f" ({outcome.reason})" if outcome.reason else ""
    rows, rejects = format_count(outcome.rows, "row"), format_count(outcome.rejects, "rejected line")
    return f"{outcome.manifest} {outcome.state}: {rows}, {rejects}{reason}"


def format_with_alarm(outcome: ConversionOutcome) -> str:
    """One line for the log; it begins with ``ALARM`` if the manifest is FAILED, poison, WAITING, or not in the ledger.

    Not if a fault of the environment is the cause: ``format_faults`` makes one alarm for all these manifests.
    """
    line = format_outcome(outcome)
    poison = outcome.state == State.SUPERSEDED and (outcome.reason or "").startswith(GIVEN_UP)
    waiting = outcome.state == WAITING and outcome.fault is None
    return f"{ALARM} {line}" if poison or waiting or outcome.state in (State.FAILED, UNKNOWN) else line


def format_end(outcomes: Sequence[ConversionOutcome], unfinished: Sequence[ConversionOutcome]) -> str:
    """The last line of a run's log: what happened, and what to do if ``unfinished`` manifests are left."""
    if not unfinished:
        failed = sum(outcome.state == State.FAILED for outcome in outcomes)
        advice = f", {failed} of them FAILED: run 'hybrid-router failures' to see why and what to do" if failed else ""
        return f"the run ended, no manifest that it took is left to convert{advice}"
    first = format_outcome(unfinished[0])
    of_all = f"of {format_count(len(outcomes), 'manifest')}"
    number = format_count(len(unfinished), f"{of_all} is", f"{of_all} are")
    return (
        f"the run ended, {number} unfinished (first: {first}): nothing is "
        "lost, overnight starts another job run for them, or the next night does"
    )


def format_faults(outcomes: Iterable[ConversionOutcome]) -> str | None:
    """One ``ALARM`` sentence for all manifests that wait because of the environment; None if there are none.

    It names the fault of the first one; a missing permission has priority over load and network.
    """
    faults = sorted(
        (outcome.fault for outcome in outcomes if outcome.fault is not None), key=lambda fault: fault.passing
    )
    if not faults:
        return None
    waiting = format_count(len(faults), "manifest waits", "manifests wait")
    return f"{ALARM} {waiting} for the next run, without having used up an attempt: {faults[0]}"
