"""The neighbours of rejected lines, read from their input files."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa
from botocore.exceptions import ClientError

from cli.quarantine.records import ONE_LINE, QuarantineRecord
from lake.faults import Fault, judge
from lake.layout import parse_s3_uri
from lake.manifest import ObjectVersion
from verify.elements import Line, lines_of
from verify.objects import GoneError, open_text, pinned_version

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


MAX_READ_BYTES = 64 << 20
"""Maximum bytes read of a file, after decompression: a line's number is known only to a reader of all lines before
it."""
MAX_LINE_BYTES = 1 << 20
"""A longer neighbour is only counted."""
BROKEN = (EOFError, OSError, pa.ArrowInvalid)
"""What the decompression of a damaged file raises."""


@dataclass(slots=True)
class LineContext:
    """Where a rejected line is in its file."""

    number: int
    """From 1."""
    before: list[Line]
    after: list[Line] = field(default_factory=list)


def read_contexts(
    s3: S3Client, records: Iterable[QuarantineRecord], count: int
) -> dict[tuple[str, str, int], LineContext | str]:
    """The context of each rejected line, by its identity; a text says why there is none.

    ``count``: lines before and after a rejected line. Memory holds them, and one line of at most ``MAX_LINE_BYTES``.
    """
    lines = sorted((record for record in records if record.kind == ONE_LINE), key=lambda record: record.identity)
    contexts: dict[tuple[str, str, int], LineContext | str] = {}
    for (source, version), of_file in groupby(lines, key=lambda record: (record.source, record.version)):
        offsets = [record.offset for record in of_file]
        found: dict[int, LineContext] = {}
        reason = f"it is after the first {MAX_READ_BYTES >> 20} MiB of its file"
        try:
            stream = open_text(s3, _input_file(s3, source, version))
            # What was found before an error stays.
            found.update(_contexts(lines_of(stream, MAX_LINE_BYTES), offsets, count))
        except GoneError as error:
            reason = f"the file cannot be read any more: {error}"
        except BROKEN as error:
            reason = f"the file cannot be decompressed: {error}"
        contexts.update({(source, version, offset): found.get(offset, reason) for offset in offsets})
    return contexts


def _input_file(s3: S3Client, source: str, version: str) -> ObjectVersion:
    """The version that the record names; raises ``GoneError``."""
    uri = parse_s3_uri(source)
    etag = version.removeprefix("etag:")
    version_id = version if etag == version else None
    try:
        head = s3.head_object(Bucket=uri.bucket, Key=uri.key, **pinned_version(etag, version_id))
    except ClientError as error:
        if judge(error) == Fault.FILE:
            raise GoneError(f"S3 answers {error.response['Error']['Code']}") from error
        raise
    return ObjectVersion(uri.bucket, uri.key, head["ETag"].strip('"'), head["ContentLength"], "", version_id)


def _contexts(lines: Iterable[Line], offsets: Sequence[int], count: int) -> Iterator[tuple[int, LineContext]]:
    """The context of each offset (ascending), by the line that has it; reads no line that none of them needs."""
    waiting = deque(offsets)
    before: deque[Line] = deque(maxlen=count)
    incomplete: list[LineContext] = []
    for line in lines:
        for context in incomplete:
            context.after.append(line)
        incomplete = [context for context in incomplete if len(context.after) < count]
        # A line after a byte order mark begins after it.
        while waiting and waiting[0] <= line.offset + line.length:
            context = LineContext(line.number, list(before))
            incomplete.extend([context] if count else [])
            yield waiting.popleft(), context
        if not (waiting or incomplete) or line.offset >= MAX_READ_BYTES:
            return
        before.append(line)
