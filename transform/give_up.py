"""Gives up manifests: sets apart poisonous or denied files, leaves the manifest to another run, or sets it FAILED.

Errors that are not a manifest's fault become values: the cause, a person's remedy, and whether the fault passes.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from botocore.exceptions import ClientError

from lake.commit import PendingObject
from lake.errors import TerminalError
from lake.faults import (
    CREDENTIAL_CODES,
    CREDENTIAL_ERRORS,
    DISK_ERRORS,
    FORBIDDEN,
    KEY_CODES,
    NETWORK_ERRORS,
    RESOURCE_CODES,
    RIGHTS_CODES,
    STILL_EXPIRED,
    Fault,
    error_code,
    http_status,
    judge,
)
from lake.ledger import ManifestRow, State
from lake.manifest import Lane, Manifest, new_manifest_id
from lake.manifest_documents import read_manifest, write_manifest
from lake.publish import abort_upload
from lake.texts import advise_reprocess, format_count
from lake.time import iso_utc
from transform.outcome import GIVEN_UP, ConversionOutcome
from transform.plan_attempt import Attempt
from transform.task_model import ConversionContext, FileFailure, TaskResult


def give_up(
    context: ConversionContext,
    claim: ManifestRow,
    reason: str,
    uploaded: Iterable[PendingObject],
    exclusions: str | None = None,
    *,
    counted: bool = True,
) -> None:
    """Release the manifest to QUEUED, then abort its uploads: in this order no commit of the attempt can follow.

    Some uploads remain until they are aborted after the manifest's commit: those that only a lost task attempt knows,
    or all of them if the row has changed. ``reason`` is for the row and its readers. ``exclusions`` is the key of the
    document with the files that the next attempt skips. ``counted`` is whether the attempt uses up a try.
    """
    if context.ledger.manifests.release(claim, reason, context.clock(), exclusions, counted=counted):
        _abort(context, uploaded)


def _abort(context: ConversionContext, uploaded: Iterable[PendingObject]) -> None:
    """Abort uploads, after no commit of the attempt can follow."""
    for item in uploaded:
        abort_upload(context.s3, item.bucket, item.key, item.upload_id)


def record_fault(context: ConversionContext, manifests: Iterable[str], fault: "EnvironmentFault") -> None:
    """Record the fault in the row of the first waiting manifest, so that the verdict of the execution names it.

    A PUBLISHING manifest is used only if none is QUEUED: the sweep may finish it earlier. An error is only logged.
    """
    ledger = context.ledger.manifests
    try:
        rows = [row for row in map(ledger.get, manifests) if row is not None and row.state != State.RUNNING]
        any(ledger.record_reason(row, str(fault)) for row in sorted(rows, key=lambda row: row.state != State.QUEUED))
    except Exception as error:
        context.log(f"the reason could not be recorded in the ledger, only this log has it: {error}")


def format_given_up(row: ManifestRow) -> str:
    why = row.reason or "its runs ended without reporting a result"
    return f"{GIVEN_UP} {format_count(row.tries, 'attempt')}: {why}"


def supersede_or_fail(context: ConversionContext, row: ManifestRow) -> bool:
    """Supersede or fail a QUEUED manifest that may not be tried again. False: the row has changed, read it again.

    A manifest of the stream lane goes to the batch lane unchanged. There it is halved until a bad file is alone in a
    manifest, which ends FAILED. A manifest that was published before is never superseded: it ends FAILED, and its
    published generation stays. Raises ``InvalidDocumentError`` if the manifest's document is not valid.
    """
    assert row.state == State.QUEUED
    reason, now = format_given_up(row), context.clock()
    successors = [] if row.published is not None else _plan_successors(context, row, now)
    if not successors:
        return context.ledger.manifests.fail(row, f"{reason}; {advise_reprocess(row.id)}", now)
    return _supersede(context, row, successors, reason)


def _supersede(context: ConversionContext, row: ManifestRow, successors: Sequence[Manifest], reason: str) -> bool:
    rows = [write_manifest(context.s3, context.resources.control_bucket, successor) for successor in successors]
    return context.ledger.manifests.supersede(row, rows, reason, context.clock())


def _plan_successors(context: ConversionContext, row: ManifestRow, now: datetime) -> list[Manifest]:
    resources = context.resources
    manifest = read_manifest(context.s3, resources.control_bucket, row, resources.file_buckets)
    fresh = replace(manifest, lane=Lane.BATCH, urgent=False, created_at=row.queued_at)
    if row.lane == Lane.STREAM:
        return [replace(fresh, id=new_manifest_id(now), created_at=iso_utc(now))]
    if len(manifest.files) < 2:
        return []
    middle = len(manifest.files) // 2
    halves = (manifest.files[:middle], manifest.files[middle:])
    return [replace(fresh, id=new_manifest_id(now), files=files) for files in halves]


def common_fault(attempt: Attempt, results: Sequence[TaskResult]) -> "EnvironmentFault | None":
    """The fault of a task or file for which the whole manifest waits; None if denied files can be set apart.

    They cannot be set apart if no other file was read, because one denied file then looks like a denied bucket, or if
    the manifest was published, because it is never superseded; its published generation stays visible meanwhile.
    """
    failures = [failure for result in results for failure in result.failures]
    denied = {failure.file: failure.denied for failure in failures if failure.denied is not None}
    fault = next((result.fault for result in results if result.fault is not None), None)
    if fault is not None or not denied:
        return fault
    read = {item.split.file for result in results for item in result.splits if item.split.file.size} - denied.keys()
    read |= {failure.file for failure in failures if failure.slow}
    return None if read and attempt.claim.published is None else next(iter(denied.values()))


def set_apart(
    context: ConversionContext, attempt: Attempt, failures: Iterable[FileFailure], uploaded: Iterable[PendingObject]
) -> ConversionOutcome | None:
    """Supersede the manifest by one with its slow files, or else its denied files, and one with all others.

    Both are as old as the manifest and have all their tries. Slow files go to the batch lane, denied files stay in the
    row's lane; this run converts successors of its own lane. None: the row has changed. Raises botocore's errors.
    """
    row, now = attempt.claim, context.clock()
    slow = {failure.file: failure.reason for failure in failures if failure.slow}
    chosen = slow or {failure.file for failure in failures if failure.denied is not None}
    apart = tuple(file for file in attempt.manifest.files if file in chosen)
    others = tuple(file for file in attempt.manifest.files if file not in chosen)
    # The document of a reprocessed manifest has the lane and the age of its first generation.
    urgent = attempt.manifest.urgent and row.lane == Lane.STREAM
    whole = replace(attempt.manifest, lane=row.lane, urgent=urgent, created_at=row.queued_at)
    parts = [replace(whole, id=new_manifest_id(now), files=files) for files in (apart, others) if files]
    number, first = format_count(len(apart), "file"), apart[0]
    if slow:
        parts[0] = replace(parts[0], lane=Lane.BATCH, urgent=False)
        reason = (
            f"{number} left the stream lane (first: {first.uri}: {slow[first]}), now in manifest {parts[0].id} of the "
            "batch lane"
        )
    else:
        reason = f"access to {number} is denied (first: {first.uri}), now waiting in manifest {parts[0].id}"
    if not _supersede(context, row, parts, reason):
        return None
    _abort(context, uploaded)
    successors = tuple(part.id for part in parts if part.lane == row.lane)
    return ConversionOutcome(row.id, State.SUPERSEDED, reason=reason, successors=successors)


MAX_CAUSE_CHARACTERS = 700
READ_ACTION = "s3:GetObject (where the bucket has versions: s3:GetObjectVersion)"
ACTIONS = {
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "CompleteMultipartUpload": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "DeleteObject": "s3:DeleteObject",
    "GetObject": READ_ACTION,
    "HeadObject": "s3:GetObject",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "ListObjectsV2": "s3:ListBucket",
    "PutObject": "s3:PutObject",
    "UploadPart": "s3:PutObject",
}
"""IAM actions of the jobs' S3 requests (Service Authorization Reference); errors of other services name them."""
CHECK_CREDENTIALS = "check the role of the job, its session and the clock of its machine"
WAIT = "the next run retries it: if it persists, check the health of the service"
NAMED_ACTION = re.compile(r"not authorized to perform: ([a-z0-9-]+:[A-Za-z]+)")
"""Matches the action in newer error messages of AWS, which also name the action on the KMS key."""


@dataclass(frozen=True, slots=True)
class EnvironmentFault:
    """Why something cannot be done now, although the manifest is not at fault."""

    cause: str
    """What was refused or failed; it names a missing permission."""
    remedy: str
    passing: bool
    """Whether load or network is the cause: it can be over in seconds, so the same run tries again."""
    denied: bool = False
    """Whether a permission, a key or a resource is the cause: every run meets it until a person acts."""

    def __str__(self) -> str:
        """One sentence for the log and for the manifest's row."""
        return f"{self.cause}; {self.remedy}"


def fault_of(error: BaseException, subject: str = "") -> EnvironmentFault | None:
    """The fault that caused an error, directly or through its chain of causes; None if none is proven.

    An error that is proven to belong to a file or a document (a ``TerminalError``) is not a fault of the environment.
    ``subject`` names the subject of the request if the error does not.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, TerminalError):
            return None
        if judge(cause) == Fault.ENVIRONMENT:
            text = f"{subject}: {error}" if subject else str(error)
            return _describe(cause, text[:MAX_CAUSE_CHARACTERS])
        cause = cause.__cause__
    return None


def _describe(error: BaseException, text: str) -> EnvironmentFault:
    if isinstance(error, ClientError):
        return _describe_answer(error, text)
    if isinstance(error, CREDENTIAL_ERRORS) or str(error) == STILL_EXPIRED:
        return EnvironmentFault(f"there are no valid credentials: {text}", CHECK_CREDENTIALS, passing=False)
    if isinstance(error, NETWORK_ERRORS):
        return EnvironmentFault(f"AWS could not be reached: {text}", WAIT, passing=True)
    if isinstance(error, PermissionError):
        remedy = "allow it for the user of the process"
        return EnvironmentFault(f"access to a file is denied: {text}", remedy, passing=False, denied=True)
    if isinstance(error, OSError) and error.errno in DISK_ERRORS:
        remedy = "give the workers more disk, or lower convert.target_file_bytes"
        return EnvironmentFault(f"the disk of a worker is full: {text}", remedy, passing=False)
    remedy = "the next run has other machines: if it persists, give the workers more disk and memory"
    return EnvironmentFault(f"a worker's machine failed: {text}", remedy, passing=False)


def _describe_answer(error: ClientError, text: str) -> EnvironmentFault:
    code, denied = error_code(error), True
    named = NAMED_ACTION.search(str(error.response.get("Error", {}).get("Message", "")))
    action = named.group(1) if named else ACTIONS.get(error.operation_name, error.operation_name)
    if code in KEY_CODES:
        cause = f"{action} is refused because of the KMS key"
        remedy = "enable the key of the bucket again, or cancel its deletion"
    elif code in CREDENTIAL_CODES:
        cause, remedy, denied = f"{action} is refused because of its credentials", CHECK_CREDENTIALS, False
    elif code in RESOURCE_CODES:
        cause, remedy = "a bucket or table is missing or in another region", "deploy the stack again"
    elif code in RIGHTS_CODES or http_status(error) == FORBIDDEN:
        cause = f"{action} is denied"
        remedy = "allow it in the policies of the jobs' role, of the bucket or table, and of its KMS key if it has one"
    else:
        return EnvironmentFault(f"{action} failed for now: {text}", WAIT, passing=True)
    return EnvironmentFault(f"{cause}: {text}", remedy, passing=False, denied=denied)
