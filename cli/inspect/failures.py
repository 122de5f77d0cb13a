"""``hybrid-router failures``: every manifest and file that did not get through, why, since when, and what to do."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain, islice
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer
from botocore.exceptions import ClientError

from cli.commands import Answer, Limit
from cli.deployed_stack import DeployedStack, known_dataset
from cli.documents import FailureKind, FailuresDocument, ListedFailure
from cli.errors import ExitCode
from cli.inspect.executions import read_zone
from cli.inspect.trace import trace_arrival
from cli.terminal import working
from lake.commit import SourceCount, read_result
from lake.errors import InvalidDocumentError
from lake.faults import is_denial
from lake.layout import list_objects, parse_s3_uri, part_key
from lake.ledger import ArrivalRow, Failure, ManifestRow, State
from lake.ledger.table import batches_of
from lake.manifest import UNVERSIONED, Lane, ObjectVersion
from lake.settings.records import FAILED_RECORDS
from lake.texts import explain_command, format_clock, format_count, format_size, printable
from lake.time import iso_utc

MAX_LISTED = 20_000
"""Maximum number of objects that are listed."""
UNKNOWN = "unknown"


def list_not_delivered(stack: DeployedStack, dataset: str | None) -> tuple[list[ListedFailure], bool]:
    """The undelivered records of one dataset or all, by ``[[records]]`` and error; and whether the list is complete.
    Records of a removed ``[[records]]`` have no dataset; a stage without any need not list its bucket."""
    found: defaultdict[tuple[str, ...], list[Any]] = defaultdict(list)
    try:
        entries = list_objects(stack.s3, stack.resources.input_bucket, FAILED_RECORDS)
        objects = list(islice((item for item in entries if not item["Key"].endswith("/")), MAX_LISTED + 1))
    except ClientError as error:
        if stack.outputs.records or not is_denial(error):
            raise
        objects = []
    for item in objects[:MAX_LISTED]:
        names = item["Key"].removeprefix(FAILED_RECORDS).split("/")[:-1]
        found[tuple(names[:2])].append(item)
    failures = []
    for folders, items in found.items():
        name, kind = (*folders, UNKNOWN, UNKNOWN)[:2]
        of_records = stack.outputs.records.get(name)
        if dataset in (None, of_records):
            uri = "/".join((f"s3://{stack.resources.input_bucket}/{FAILED_RECORDS.rstrip('/')}", *folders, ""))
            failures.append(
                ListedFailure(
                    FailureKind.NOT_DELIVERED,
                    f"Firehose could not deliver records of {name}: {kind}",
                    PUT_AGAIN,
                    None,
                    iso_utc(min(item["LastModified"] for item in items)),
                    dataset=of_records,
                    uri=uri,
                    files=len(items),
                    bytes=sum(item["Size"] for item in items),
                )
            )
    return failures, len(objects) <= MAX_LISTED


def count_dead_letters(stack: DeployedStack) -> int:
    name = "ApproximateNumberOfMessages"
    answer = stack.sqs.get_queue_attributes(QueueUrl=stack.outputs.dead_letters, AttributeNames=[name])
    return int(answer["Attributes"][name])


PARALLEL_READS = 16
PUT_AGAIN = "put the records to a key of the dataset again as docs/records.md says, then delete these files"
TAKE = (
    "if they are data: do what the reason says; after a deployment the sweep takes recent files, and a backfill all; "
    "they are no longer counted 30 days after the last one"
)
WHEN_REMOVED = "remove the cause, then have the manifest converted again"
RESTORE = "restore an earlier version of the document, or set input.bucket back; the next sweep then takes its files"
OR_READ_AGAIN = "restore the document, or have its manifest converted again"
UPLOAD_OR_READ_AGAIN = (
    "upload a repaired file, or an empty one if it is not data, under the same key; if it can be read as it is now, "
    "have it read again"
)
COMPARE = "manifest {manifest} has converted a later version of it: nothing to do, unless that lacks lines of this one"


def failures_command(
    stack: DeployedStack,
    dataset: Annotated[str | None, typer.Option(help="Only failures of this dataset.")] = None,
    limit: Limit = 100,
) -> Answer:
    """List every manifest and file that did not get through, why, and what to run; exit code 1 if there are any."""
    with working("reading the ledger ..."):
        if dataset is not None and dataset not in stack.outputs.records.values():
            known_dataset(stack, dataset)
        zone = read_zone(stack)
        document = failures_document(stack, dataset, limit)
    is_fine = document.complete and all(failure.kind == FailureKind.REPLACED for failure in document.failures)
    code = ExitCode.OK if is_fine else ExitCode.NEGATIVE
    return Answer(document, lambda: print_failures_document(document, zone, datetime.now(UTC)), code)


def failures_document(stack: DeployedStack, dataset: str | None, limit: int) -> FailuresDocument:
    found: list[ListedFailure] = []
    complete = True
    manifests = stack.ledger.manifests
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        for lane in Lane:
            for listed, describe in (
                (manifests.open(lane, Failure.FAILED), _failed),
                (manifests.open(lane, Failure.UNREADABLE), partial(_unreadable, limit=limit)),
                (manifests.open(lane, State.QUEUED), _blocked),
                (manifests.open(lane, State.PUBLISHING), _blocked),
            ):
                of_dataset = (row for row in listed if dataset in (None, row.partition.dataset))
                # An open manifest that is not blocked only waits for its turn.
                rows = list(islice((row for row in of_dataset if row.blocked or not row.open), limit + 1))
                failures: list[ListedFailure] = []
                for batch in batches_of(rows[:limit], PARALLEL_READS):
                    failures += chain.from_iterable(pool.map(partial(describe, stack), batch))
                    if len(failures) > limit:
                        break
                complete = complete and max(len(rows), len(failures)) <= limit
                found += failures[:limit]
    others = [(list(islice(_parts_set_apart(stack, dataset), limit + 1)), True), list_not_delivered(stack, dataset)]
    if dataset is None:
        others += [(_dead_letters(stack), True), _ignored(stack)]
    for failures, all_read in others:
        complete = complete and all_read and len(failures) <= limit
        found += failures[:limit]
    order = list(FailureKind)
    found.sort(key=lambda failure: (order.index(failure.kind), failure.since or ""))
    runnable = (replace(failure, reason=stack.runnable(failure.reason)) for failure in found)
    return FailuresDocument(stack.name, complete, tuple(runnable))


def _failed(stack: DeployedStack, row: ManifestRow) -> list[ListedFailure]:
    reason = row.reason or "the ledger has no reason"
    return [_of_row(FailureKind.FAILED, row, reason, WHEN_REMOVED, _reprocess(stack, row))]


def _blocked(_stack: DeployedStack, row: ManifestRow) -> list[ListedFailure]:
    again = {
        Lane.BATCH: "remove the cause: the next night converts it",
        Lane.STREAM: "remove the cause: the stream lane converts it at its next attempt",
    }
    advice = again[row.lane] if row.state == State.QUEUED else "remove the cause: the sweep publishes it"
    return [_of_row(FailureKind.BLOCKED, row, row.reason, advice, None)] if row.reason else []


def _parts_set_apart(stack: DeployedStack, dataset: str | None) -> Iterator[ListedFailure]:
    collections, bucket = stack.ledger.collections, stack.resources.control_bucket
    apart = chain.from_iterable(collections.parts(row.id) for row in collections.open() if row.id.is_apart)
    for part in apart:
        if dataset in (None, *part.datasets):
            reason = "this document was damaged, gone, or of a replaced input bucket: its files are in no manifest yet"
            failure = ListedFailure(FailureKind.BLOCKED, reason, RESTORE, f"hybrid-router sweep{stack.options}")
            uri = f"s3://{bucket}/{part_key(part.id)}"
            yield replace(failure, since=part.created_at, uri=uri, files=part.files, bytes=part.bytes)


def _unreadable(stack: DeployedStack, row: ManifestRow, limit: int) -> list[ListedFailure]:
    """Yield its unreadable files, at most one more than ``limit``: each costs several requests."""
    if row.published is None:
        return []
    try:
        result = read_result(stack.s3, stack.resources.control_bucket, row.id, row.published.generation)
        failed = (source for source in result.sources if source.failed)
        return [_unreadable_file(stack, row, source) for source in islice(failed, limit + 1)]
    except InvalidDocumentError as error:
        reason = f"its files are not known: {error}"
        return [_of_row(FailureKind.UNREADABLE, row, reason, OR_READ_AGAIN, _reprocess(stack, row))]


def _unreadable_file(stack: DeployedStack, row: ManifestRow, file: SourceCount) -> ListedFailure:
    kind, advice, command = FailureKind.UNREADABLE, UPLOAD_OR_READ_AGAIN, _reprocess(stack, row)
    name = parse_s3_uri(file.uri)
    versions = stack.ledger.arrivals.versions(name.bucket, name.key)
    own = next((item.file for item in versions if item.file.version == file.version), None)
    manifest = None if own is None else _converted_later(stack, own, versions)
    if own is not None and manifest is not None and not _was_uploaded_again(stack, own):
        kind, advice = FailureKind.REPLACED, COMPARE.format(manifest=manifest)
        command = f"{explain_command(file.uri)}{stack.options}"
    failure = _of_row(kind, row, file.failed or "", advice, command)
    return replace(failure, since=row.finished_at, uri=file.uri, files=1, bytes=file.size)


def _converted_later(stack: DeployedStack, own: ObjectVersion, versions: Iterable[ArrivalRow]) -> str | None:
    for row in versions:
        if row.file.arrived_at > own.arrived_at:
            try:
                trace = trace_arrival(stack.s3, stack.ledger, stack.resources, row)
            except InvalidDocumentError:
                # Not known to be converted.
                continue
            if trace.state == State.DONE and trace.source is not None and not trace.source.failed:
                return trace.manifests[-1].id
    return None


def _was_uploaded_again(stack: DeployedStack, own: ObjectVersion) -> bool:
    """Whether the bytes of a file without a version are under its key again. They are the same arrival, which only a
    reprocess reads. False if the caller lacks the right."""
    if own.version_id is not None:
        return False
    try:
        head = stack.s3.head_object(Bucket=own.bucket, Key=own.key, IfMatch=f'"{own.etag}"')
    except ClientError:
        return False
    # An object that was put after versioning was enabled is another file.
    return head.get("VersionId", UNVERSIONED) == UNVERSIONED


def _reprocess(stack: DeployedStack, row: ManifestRow) -> str:
    return f"hybrid-router reprocess --manifest {row.id}{stack.options}"


def _of_row(kind: FailureKind, row: ManifestRow, reason: str, advice: str, command: str | None) -> ListedFailure:
    return ListedFailure(
        kind,
        reason,
        advice,
        command,
        row.changed_at,
        row.id,
        row.lane.value,
        row.partition.dataset,
        str(row.partition),
        files=row.files,
        bytes=row.bytes,
    )


def _dead_letters(stack: DeployedStack) -> list[ListedFailure]:
    number = count_dead_letters(stack)
    if not number:
        return []
    command = f"hybrid-router dead-letters ls{stack.options}"
    reason = "events or starts of schedules failed in every attempt"
    advice = "read them, remove the cause, and redrive them"
    return [ListedFailure(FailureKind.DEAD_LETTERS, reason, advice, command, files=number)]


def _ignored(stack: DeployedStack) -> tuple[list[ListedFailure], bool]:
    groups, complete = stack.ledger.ignored.groups()
    failures = [
        ListedFailure(
            FailureKind.IGNORED,
            group.reason,
            TAKE,
            f"{explain_command(group.example)}{stack.options}",
            group.since,
            uri=group.example,
            files=group.files,
            bytes=group.bytes,
        )
        for group in groups
    ]
    return failures, complete


def print_failures_document(document: FailuresDocument, zone: ZoneInfo, now: datetime) -> None:
    """Print a few lines for each failure; instants are in ``zone``."""
    for failure in document.failures:
        since = f" since {format_clock(failure.since, zone, now)}" if failure.since else ""
        typer.echo(f"{failure.kind} {_thing(failure)}{since}")
        typer.echo(f"  why   {printable(failure.reason)}")
        typer.echo(f"  do    {failure.advice}")
        if failure.command:
            typer.echo(f"  run   {failure.command}")
    number = len(document.failures)
    if number or not document.complete:
        shown = "in all" if document.complete else "shown, there may be more: pass a larger --limit, or --dataset"
        typer.echo(f"{number:,} {shown}; times in {zone.key}")
    else:
        typer.echo("no failures")


def _thing(failure: ListedFailure) -> str:
    if failure.uri and failure.manifest and failure.bytes is not None:
        return f"{printable(failure.uri)} ({format_size(failure.bytes)}, manifest {failure.manifest})"
    if failure.bytes is None:
        return format_count(failure.files, "message")
    size = f"{format_count(failure.files, 'file')}, {format_size(failure.bytes)}"
    if failure.kind == FailureKind.IGNORED:
        return f"{size}, such as {printable(failure.uri or '')}"
    if failure.uri:
        return f"{printable(failure.uri)} ({size})"
    return f"manifest {failure.manifest} of {failure.partition}, {failure.lane} lane ({size})"
