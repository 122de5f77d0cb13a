"""The text that tells a person of a verdict. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.printable import printable
from router.settle.verdict import ExecutionOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from router.settle.verdict import Verdict


def format_notification(
    execution: str, verdict: Verdict, verdict_uri: str, night: Sequence[str], *, stage: str, quarantine_bucket: str
) -> str:
    """Verdict, counts, and what to do next with the commands for it; plain text for an email.

    Parameters
    ----------
    verdict_uri
        URI of the verdict document.
    night
        What differs from the plan, in sentences without a full stop.
    stage
        Name of the deployment, as the command line takes it.
    """
    lines = [
        f"Execution {execution} of overnight, stage {stage}: {verdict.outcome}",
        # A manifest's reason can name a file.
        f"{printable(verdict.message)}.",
        "",
        f"Manifests: {verdict.done} done, {verdict.failed} failed, {verdict.open} open.",
        f"Published: {verdict.rows} rows; in the quarantine: {verdict.rejects} lines, {verdict.failed_files} files.",
        f"Damaged objects: {verdict.damaged_objects}.",
        *(f"{sentence[0].upper()}{sentence[1:]}." for sentence in night),
    ]
    if steps := _steps(verdict, verdict_uri, stage, quarantine_bucket):
        lines += ["", "What to do:", *(f"- {step}" for step in steps)]
    return "\n".join(lines)


def _steps(verdict: Verdict, verdict_uri: str, stage: str, quarantine_bucket: str) -> list[str]:
    steps = []
    if verdict.failed or verdict.open or verdict.damaged_objects:
        steps.append(f"Read which manifests and objects it is about, and why: aws s3 cp {verdict_uri} -")
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
        steps.append(f"List the quarantine: aws s3 ls --recursive s3://{quarantine_bucket}/")
        steps.append(f"See what happened to one file: hybrid-router explain s3://<bucket>/<key> --stage {stage}")
    if verdict.failed_files:
        command = f"hybrid-router reprocess s3://<bucket>/<key> --stage {stage}"
        steps.append(f"When a file can be read, have its manifest converted again: {command}")
    return steps
