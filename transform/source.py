"""Reads ranges of object versions. Errors distinguish unreadable files from requests that can be tried again.

Ranges of the next splits are requested while one split is parsed, so that the parser seldom waits for the network.
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, NoReturn, Self

import obstore
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    IncompleteReadError,
    NoCredentialsError,
)
from obstore.exceptions import BaseError
from obstore.store import S3Store

from lake.aws_types import Buffer, S3Client
from lake.documents import receive
from lake.errors import TerminalError, TransientError
from lake.faults import FOREIGN_KEY_CODE, Fault, error_code, is_denial, judge, refused_key
from lake.manifest import UNVERSIONED, ObjectVersion
from lake.texts import format_count, reprocess_file_command
from transform.clients import Fetch, object_store, s3_client
from transform.task_model import Split

DELETED_CODES = frozenset({"NoSuchKey", "NoSuchVersion", "MethodNotAllowed"})


class UnreadableFileError(TerminalError):
    """No attempt can read this version of the file to its end; the message is the reason."""


class UnreadableNowError(UnreadableFileError):
    """The file can be read after its cause is removed. ``advice`` is the reason and what to do; the message adds the
    command that reads the file again in a stage."""

    def __init__(self, advice: str, file: ObjectVersion) -> None:
        super().__init__(f"{advice}, then run: {reprocess_file_command(file.uri)}")
        self.advice = advice


class DeniedFileError(TransientError):
    """The job may not read this file; other files of the input may be readable."""


class Source:
    """Reads ranges of object versions in buckets of one region. Thread-safe.

    ``input_keys`` is ``Settings.input_kms_keys``. In ``input_bucket``, a file without a version was put before the
    bucket got versions. In other buckets, such as the control bucket, only the ETag identifies it.
    """

    def __init__(self, region: str, input_keys: Collection[str] | None, input_bucket: str | None = None) -> None:
        self._region = region
        self._input_keys = input_keys
        self._input_bucket = input_bucket
        self._stores: dict[str, S3Store] = {}
        self._panicked = False

    @cached_property
    def _client(self) -> S3Client:
        return s3_client(self._region)

    def fetch(self, file: ObjectVersion, start: int, end: int) -> Buffer:
        """The bytes [start, end) of exactly this version.

        Raises ``UnreadableFileError`` if the version was deleted, overwritten or archived, if its key cannot be used,
        or if its size differs from its event's; ``DeniedFileError`` if S3 refuses the read; otherwise
        ``TransientError``: a new try can succeed.
        """
        try:
            by_client = self._panicked or needs_client(file.key)
            data = self._fetch_by_client(file, start, end) if by_client else self._get(file, start, end)
        except UnreadableFileError as error:
            if file.version_id is not None:
                raise
            # If the bucket got versions after the put, a newer version does not replace the version ``null``.
            file = replace(file, version_id=UNVERSIONED)
            try:
                data = self._fetch_by_client(file, start, end)
            except UnreadableNowError:
                raise
            except UnreadableFileError:
                raise error from None
        received = len(memoryview(data))
        if received != end - start:
            self._refuse_size(file, received, end - start)
        return data

    def _refuse_size(self, file: ObjectVersion, received: int, asked: int) -> NoReturn:
        """Raise the error for a wrong size: of the object, if S3 reports it with its ETag, or of a proxy's answer."""
        error: BotoCoreError | ClientError = IncompleteReadError(actual_bytes=received, expected_bytes=asked)
        try:
            head = self._client.head_object(**_request(file))
            if head.get("ETag") == f'"{file.etag}"' and head["ContentLength"] != file.size:
                sizes = f"it has {format_count(head['ContentLength'], 'byte')}, and its event names {file.size:,}"
                raise UnreadableFileError(sizes)
        except (BotoCoreError, ClientError) as failed:
            error = failed
        raise TransientError(f"an answer for {file.uri} has another size and is retried: {error}") from error

    def _get(self, file: ObjectVersion, start: int, end: int) -> Buffer:
        options: dict[str, object] = (
            {"version": file.version_id} if file.version_id is not None else {"if_match": f'"{file.etag}"'}
        )
        # A whole file is read without a range: it is cheaper, and works with servers that ignore ranges.
        if (start, end) != (0, file.size):
            options["range"] = (start, end)
        try:
            answer = obstore.get(self._store(file.bucket), file.key, options=options)  # type: ignore[arg-type]
            self._refuse_later_version(file, answer.meta["version"])
            return answer.bytes()
        except (BaseError, FileNotFoundError, NoCredentialsError):
            # obstore's text contains the URL, and so the key, and "not found" can mean the bucket or a proxy. Only the
            # other client has a structured answer that can be judged.
            pass
        except BaseException as error:
            # obstore's runtime got no thread or file descriptor, and is only created once per process. No module
            # exports this class.
            if type(error).__name__ != "PanicException":
                raise
            self._panicked = True
        return self._fetch_by_client(file, start, end)

    def _fetch_by_client(self, file: ObjectVersion, start: int, end: int) -> Buffer:
        request = _request(file)
        if (start, end) != (0, file.size):
            request["Range"] = f"bytes={start}-{end - 1}"
        try:
            answer = self._client.get_object(**request)
            with closing(answer["Body"]) as body:
                self._refuse_later_version(file, answer.get("VersionId"))
                return receive(body, file.uri)
        except (ClientError, BotoCoreError) as error:
            raise _read_error(file, error, self._input_keys) from error

    def _refuse_later_version(self, file: ObjectVersion, version: str | None) -> None:
        """Refuse a version from after the bucket got versions: it is another file, even with the same bytes."""
        if file.bucket == self._input_bucket and file.version_id is None and version not in (None, UNVERSIONED):
            raise UnreadableFileError(_deleted(file))

    def _store(self, bucket: str) -> S3Store:
        if bucket not in self._stores:
            self._stores[bucket] = object_store(self._region, bucket)
        return self._stores[bucket]


def _request(file: ObjectVersion) -> dict[str, Any]:
    request = {"Bucket": file.bucket, "Key": file.key}
    if file.version_id is not None:
        request["VersionId"] = file.version_id
    if file.version_id in (None, UNVERSIONED):
        # While versions are suspended, the next put replaces the version null.
        request["IfMatch"] = f'"{file.etag}"'
    return request


def needs_client(key: str) -> bool:
    """Whether obstore's paths cannot express the key (empty, ``.`` and ``..`` segments, control characters)."""
    segments = key.split("/")
    return any(part in ("", ".", "..") for part in segments) or any(ord(char) < 32 or ord(char) == 127 for char in key)


def _deleted(file: ObjectVersion) -> str:
    return "this version was deleted after it arrived" if file.version_id else "it was deleted after it arrived"


def _read_error(
    file: ObjectVersion, error: ClientError | BotoCoreError, input_keys: Collection[str] | None
) -> TerminalError | TransientError:
    if not isinstance(error, ClientError) or judge(error, input_keys) != Fault.FILE:
        kind = DeniedFileError if is_denial(error) else TransientError
        return kind(f"{file.uri} could not be read and is retried: {error}")
    code = error_code(error)
    if (key := refused_key(error)) is not None:
        advice = (
            f"its uploader has encrypted it by the KMS key {key}, not by the input's, and the jobs are not allowed to "
            "use it: put it again without that key, or allow the jobs' role kms:Decrypt on it"
        )
        return UnreadableNowError(advice, file)
    reasons = {
        **dict.fromkeys(DELETED_CODES, _deleted(file)),
        "PreconditionFailed": "it was overwritten after it arrived, and the bucket keeps no versions",
        "InvalidRange": f"it is shorter than the {file.size} bytes of its event",
        FOREIGN_KEY_CODE: "it is encrypted by a key that only its writer has (SSE-C): put it again without that key",
    }
    if code in reasons:
        return UnreadableFileError(reasons[code])
    if code == "InvalidObjectState":
        return UnreadableNowError("it is archived: restore it", file)
    advice = f"its encryption key cannot be used ({code}): enable the key, or cancel its deletion"
    return UnreadableNowError(advice, file)


CHUNK_BYTES = 8 << 20
"""Size of a request. With 16 MiB and the same number of requests, a flat task took 312 MB of memory instead of 208."""
TAIL_BYTES = 64 << 10
"""Size of the first request after a split's end, for the rest of its last line; later requests are larger."""


class Requests(NamedTuple):
    ahead: int
    block_files: int
    """Small files that one thread requests in sequence: handing over each alone takes longer than parsing it."""


S3_REQUESTS = Requests(48, 8)
"""For S3, which takes some 30 ms to the first byte, even of a small file."""
MAX_BYTES_AHEAD = 16 << 20
"""Limit of requested bytes; a further request starts only below both limits."""
MAX_BLOCK_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes [start, end) of the file of the split with this index."""

    split: int
    start: int
    end: int


def ranges_of(split: Split, index: int, chunk_bytes: int) -> list[Range]:
    """The ranges that a split always needs: from the byte before it, which may be a newline, to its end."""
    first = max(split.start - 1, 0)
    return [Range(index, start, min(start + chunk_bytes, split.end)) for start in range(first, split.end, chunk_bytes)]


@dataclass(frozen=True, slots=True)
class Block:
    """A large range alone, or small files that one thread requests in sequence."""

    ranges: deque[Range]
    answers: Future[deque[Buffer | Exception]]
    """For each range its bytes, or the error of its request."""


class ReadAhead:
    """Chunks of splits, in order. A context manager that drops pending requests at its end."""

    def __init__(
        self,
        fetch: Fetch,
        splits: Sequence[Split],
        chunk_bytes: int = CHUNK_BYTES,
        requests: Requests = S3_REQUESTS,
    ) -> None:
        self._fetch = fetch
        self._requests = requests
        self._splits = splits
        self._chunk_bytes = chunk_bytes
        self._ranges = (item for index, split in enumerate(splits) for item in ranges_of(split, index, chunk_bytes))
        self._next: Range | None = next(self._ranges, None)
        self._blocks: deque[Block] = deque()
        """Requested blocks; the first one may be partly received."""
        self._requested_bytes = 0
        self._closed = False
        self._pool = ThreadPoolExecutor(requests.ahead, thread_name_prefix="read-ahead")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def chunks(self, index: int) -> Iterator[Buffer]:
        """The bytes of one split, from the byte before it, and then the bytes after it to the end of the file.

        The caller stops when it has the last line of the split. Call it once per split, with rising indexes. Raises the
        errors of ``fetch``.
        """
        split = self._splits[index]
        self._request_more()
        while self._blocks and self._blocks[0].ranges[0].split <= index:
            if self._blocks[0].ranges[0].split < index:
                self._drop()
                self._request_more()
                continue
            data = self._receive()
            self._request_more()
            if isinstance(data, Exception):
                raise data
            yield data
            del data
        yield from self._tail(split)

    def _receive(self) -> Buffer | Exception:
        block = self._blocks[0]
        answers = block.answers.result()
        received = block.ranges.popleft()
        self._requested_bytes -= received.end - received.start
        if not block.ranges:
            self._blocks.popleft()
        # No reference is kept here, so that only the caller decides how long these bytes stay in memory.
        return answers.popleft()

    def _drop(self) -> None:
        block = self._blocks[0]
        if len(block.ranges) > 1:
            self._receive()
            return
        (dropped,) = block.ranges
        self._requested_bytes -= dropped.end - dropped.start
        block.answers.cancel()
        self._blocks.popleft()

    def _tail(self, split: Split) -> Iterator[Buffer]:
        start, size = split.end, TAIL_BYTES
        while start < split.file.size:
            end = min(start + size, split.file.size)
            yield self._fetch(split.file, start, end)
            start, size = end, min(size * 4, self._chunk_bytes)

    def _request_more(self) -> None:
        while (
            self._next is not None
            and len(self._blocks) < self._requests.ahead
            and self._requested_bytes < MAX_BYTES_AHEAD
        ):
            ranges = self._next_block()
            self._requested_bytes += sum(item.end - item.start for item in ranges)
            self._blocks.append(Block(deque(ranges), self._pool.submit(self._fetch_all, ranges)))

    def _next_block(self) -> list[Range]:
        """The next ranges for one thread; if few files are left, each file gets a thread of its own."""
        ranges: list[Range] = []
        size, (requests, block_files) = 0, self._requests
        while self._next is not None:
            size += self._next.end - self._next.start
            share = (len(self._splits) - self._next.split) // requests
            if ranges and (size > MAX_BLOCK_BYTES or len(ranges) >= min(block_files, share)):
                break
            ranges.append(self._next)
            self._next = next(self._ranges, None)
        return ranges

    def _fetch_all(self, ranges: Sequence[Range]) -> deque[Buffer | Exception]:
        answers: deque[Buffer | Exception] = deque()
        for item in ranges:
            if self._closed:
                break
            try:
                answers.append(self._fetch(self._splits[item.split].file, item.start, item.end))
            except Exception as error:
                answers.append(error)
        return answers
