"""The text that notifies a person of a verdict. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lake.commands import with_options
from lake.counted import format_count
from lake.printable import printable
from router.settle.verdict import ExecutionOutcome, Verdict

if TYPE_CHECKING:
    from router.settle.unreadable_files import UnreadableFile

MAX_NAMED_FILES = 10
"""Maximum number of unreadable files in the text; the verdict document names more of them."""


def format_notification(
    execution: str,
    verdict: Verdict,
    night: Sequence[str],
    *,
    stage: str,
    details: Sequence[str] = (),
) -> str:
    """Verdict, counts, and what to do next with the commands for it; plain text for an email.

    Parameters
    ----------
    night
        What differs from the plan, in sentences without a full stop.
    stage
        Name of the deployment, as the command line takes it.
    details
        Lines about the quarantine, after the counts.
    """
    lines = [
        f"Execution {execution} of overnight, stage {stage}: {verdict.outcome}",
        # A manifest's reason can name a file.
        f"{printable(with_options(verdict.message, f' --stage {stage}'))}.",
        "",
        f"Manifests: {verdict.done} done, {verdict.failed} failed, {verdict.open} open.",
        f"Published: {format_count(verdict.rows, 'row')}; in the quarantine: {format_count(verdict.rejects, 'line')}, "
        f"{format_count(verdict.failed_files, 'file')}.",
        f"Damaged objects: {verdict.damaged_objects}.",
        *(f"{sentence[0].upper()}{sentence[1:]}." for sentence in night),
        *details,
        "",
        "What to do:",
        f"- See its datasets, what failed and why, and the logs: hybrid-router night {execution} --stage {stage}",
        *(f"- {step}" for step in _steps(verdict, stage)),
    ]
    return "\n".join(lines)


def format_quarantine(rejects: Mapping[str, int], files: Sequence[UnreadableFile]) -> list[str]:
    """Lines that name the quarantined lines by reason, the most frequent first, and the first unreadable files."""
    reasons = sorted((item for item in rejects.items() if item[1]), key=lambda item: (-item[1], item[0]))
    lines = [f"Quarantined lines: {', '.join(f'{count} {reason}' for reason, count in reasons)}."] if reasons else []
    lines += [f"Unreadable: {printable(file.uri)}: {printable(file.reason)}" for file in files[:MAX_NAMED_FILES]]
    return lines


def _steps(verdict: Verdict, stage: str) -> list[str]:
    steps = []
    if verdict.damaged_objects:
        command = f"hybrid-router reprocess --manifest <id> --all --stage {stage}"
        steps.append(f"Restore the damaged objects, or have their manifests converted again: {command}")
    if verdict.failed:
        command = f"hybrid-router reprocess --manifest <id> --stage {stage}"
        steps.append(f"Remove the causes, then have the failed manifests converted again: {command}")
    if verdict.outcome == ExecutionOutcome.OPEN:
        steps.append(f"Wait until the other run ends, and look at its progress: hybrid-router status --stage {stage}")
    elif verdict.open:
        steps.append("Remove the cause, then start the state machine overnight again with the input {}.")
    if verdict.rejects or verdict.failed_files:
        steps.append(f"See what is in the quarantine: hybrid-router quarantine ls --stage {stage}")
        steps.append(f"See what happened to one file: hybrid-router explain s3://<bucket>/<key> --stage {stage}")
    if verdict.failed_files:
        command = f"hybrid-router reprocess s3://<bucket>/<key> --stage {stage}"
        steps.append(f"When a file can be read, have its manifest converted again: {command}")
    return steps
