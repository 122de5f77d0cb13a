"""Reading the input: whose fault an error is, and chunks in order, whichever request ends first."""

import threading
from dataclasses import replace
from itertools import count
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.response import StreamingBody
from hypothesis import given
from hypothesis import strategies as st
from obstore.exceptions import GenericError

from lake.errors import TransientError
from lake.manifest import ObjectVersion
from transform import source as source_module
from transform.give_up import fault_of
from transform.plan_attempt import split_files
from transform.source import (
    CHUNK_BYTES,
    MAX_BYTES_AHEAD,
    S3_REQUESTS,
    DeniedFileError,
    ReadAhead,
    Requests,
    Source,
    UnreadableFileError,
    needs_client,
)
from transform.task_model import Split

NAMED_FILE = ObjectVersion("input", "AccessDenied/InvalidRange.ndjson", "e", 8, "2026-03-04T11:59:00+00:00", "v1")


KEY = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd"


def source_that_fails(
    monkeypatch: pytest.MonkeyPatch, answer: Exception | list[Any], input_keys: tuple[str, ...] | None = None
) -> Source:
    """obstore fails without a type that says why, and boto3 gives ``answer``, an error or all of its answers."""

    def fail(*_: Any, **__: Any) -> Any:
        raise GenericError(f"error sending request for url (http://s3/{NAMED_FILE.bucket}/{NAMED_FILE.key})")

    monkeypatch.setattr(source_module.obstore, "get", fail)  # type: ignore[attr-defined]
    client = Mock(**{"get_object.side_effect": answer})
    monkeypatch.setattr(source_module, "object_store", Mock())
    monkeypatch.setattr(source_module, "s3_client", lambda _: client)
    return Source("eu-central-1", input_keys)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("InvalidRange", "shorter than the 8 bytes"),
        ("InvalidObjectState", "archived: restore it, then run: hybrid-router reprocess '?s3://"),
        ("KMS.DisabledException", "encryption key .* then run: hybrid-router reprocess '?s3://"),
        ("NoSuchVersion", "deleted"),
        ("NoSuchKey", "deleted"),
        ("InvalidRequest", "SSE-C"),
    ],
)
def test_a_structured_answer_decides(monkeypatch: pytest.MonkeyPatch, code: str, reason: str) -> None:
    error = ClientError({"Error": {"Code": code, "Message": ""}}, "GetObject")
    with pytest.raises(UnreadableFileError, match=reason):
        source_that_fails(monkeypatch, error, ()).fetch(NAMED_FILE, 0, 8)


@pytest.mark.parametrize("input_keys", [(KEY,), None])
def test_a_disabled_key_of_the_whole_input_excludes_no_file(
    monkeypatch: pytest.MonkeyPatch, input_keys: tuple[str, ...] | None
) -> None:
    # Given: the key that the settings name for the input, or a bucket outside the stack whose key they do not name
    error = ClientError({"Error": {"Code": "KMS.DisabledException", "Message": f"{KEY} is disabled."}}, "GetObject")
    # When
    with pytest.raises(DeniedFileError) as raised:
        source_that_fails(monkeypatch, error, input_keys).fetch(NAMED_FILE, 0, 8)
    # Then: the manifest waits, and its reason says what to do
    assert "enable the key of the bucket again" in str(fault_of(raised.value))


def test_a_file_under_a_key_of_its_uploader_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given: a key that the role may not use, and that is not the key of the input
    foreign = KEY.replace("111122223333", "999988887777")
    message = (
        f"User: arn:aws:sts::1:assumed-role/jobs/x is not authorized to perform: kms:Decrypt on resource: {foreign}"
    )
    error = ClientError({"Error": {"Code": "AccessDenied", "Message": message}}, "GetObject")
    # When, Then
    with pytest.raises(UnreadableFileError, match=f"KMS key {foreign}.* then run: hybrid-router reprocess"):
        source_that_fails(monkeypatch, error, (KEY,)).fetch(NAMED_FILE, 0, 8)


@pytest.mark.parametrize(
    "error",
    [
        *(ClientError({"Error": {"Code": code}}, "GetObject") for code in ("AccessDenied", "NoSuchBucket", "SlowDown")),
        # The key has the names of other errors.
        EndpointConnectionError(endpoint_url=f"http://s3/{NAMED_FILE.key}"),
    ],
)
def test_what_is_not_proven_to_belong_to_the_file_does_not_exclude_it(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    # Given a fast reader that says "not found", which can be the bucket
    source = source_that_fails(monkeypatch, error)

    def missing(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError(NAMED_FILE.key)

    monkeypatch.setattr(source_module.obstore, "get", missing)  # type: ignore[attr-defined]
    # When / Then
    with pytest.raises(TransientError, match="is tried again"):
        source.fetch(NAMED_FILE, 0, 8)


TOLD = {"ETag": '"e"', "ContentLength": 8}


@pytest.mark.parametrize("received", [5, 9])
@pytest.mark.parametrize(
    ("told", "faulty"),
    [
        (TOLD, None),
        ({"ContentLength": 5}, None),
        (EndpointConnectionError(endpoint_url="s3"), None),
        ({**TOLD, "ContentLength": 5}, "it has 5 bytes, and its event names 8"),
    ],
)
def test_an_answer_of_another_size_is_the_files_fault_only_if_s3_says_so(
    monkeypatch: pytest.MonkeyPatch, received: int, told: Any, faulty: str | None
) -> None:
    # Given an answer whose header agrees with its bytes
    source = source_that_fails(monkeypatch, [])
    answer = Mock(**{"bytes.return_value": bytes(received), "meta": {"version": "v1"}})
    monkeypatch.setattr(source_module.obstore, "get", lambda *_, **__: answer)  # type: ignore[attr-defined]
    monkeypatch.setattr(source._client, "head_object", Mock(side_effect=[told]))
    # When
    with pytest.raises(TransientError if faulty is None else UnreadableFileError, match=faulty) as raised:
        source.fetch(NAMED_FILE, 0, 8)
    # Then what a proxy answers uses up no attempt
    fault = fault_of(raised.value)
    assert (fault is not None and fault.passing) == (faulty is None)


def test_an_archived_version_null_under_a_newer_one_can_be_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = ("PreconditionFailed", "InvalidObjectState")
    answers = [ClientError({"Error": {"Code": code, "Message": ""}}, "GetObject") for code in codes]
    with pytest.raises(UnreadableFileError, match="archived: restore it"):
        source_that_fails(monkeypatch, answers).fetch(replace(NAMED_FILE, version_id=None), 0, 8)


def test_a_body_that_trickles_ends_its_request_and_excludes_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a body of which a byte comes every 100 seconds, so that no read times out
    monkeypatch.setattr(source_module, "time", Mock(**{"monotonic.side_effect": count(0, 100)}))
    raw = Mock(**{"read.return_value": b"x"})
    source = source_that_fails(monkeypatch, [{"Body": StreamingBody(raw, 1 << 20)}])
    # When, Then
    with pytest.raises(TransientError, match="Read timeout") as raised:
        source.fetch(NAMED_FILE, 0, 8)
    fault = fault_of(raised.value)
    assert fault is not None
    assert fault.passing
    raw.close.assert_called_once()


@pytest.mark.parametrize(
    ("key", "needed"),
    [
        ("a/b.json", False),
        ("a b+%.json", False),
        ("a//b", True),
        ("/a", True),
        ("a/", True),
        ("a/../b", True),
        ("a\nb", True),
    ],
)
def test_keys_that_obstore_cannot_express_are_read_by_the_client(key: str, needed: bool) -> None:
    assert needs_client(key) is needed


def file(key: str, size: int) -> ObjectVersion:
    return ObjectVersion("input", key, "e", size, "2026-03-04T12:00:00Z", "v")


class FakeSource:
    """Bodies by key; records its requests."""

    def __init__(self, bodies: dict[str, bytes]) -> None:
        self.bodies = bodies
        self.requests: list[tuple[str, int, int]] = []

    def fetch(self, file: ObjectVersion, start: int, end: int) -> bytes:
        self.requests.append((file.key, start, end))
        if file.key not in self.bodies:
            raise UnreadableFileError("it was deleted")
        return self.bodies[file.key][start:end]


def ahead_of(source: FakeSource, splits: list[Split], chunk_bytes: int) -> ReadAhead:
    return ReadAhead(source, splits, chunk_bytes)  # type: ignore[arg-type]


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=5), st.integers(1, 70), st.integers(1, 20))
def test_a_split_gets_the_byte_before_it_and_everything_after_it(
    bodies: list[bytes], split_bytes: int, chunk_bytes: int
) -> None:
    files = [file(str(number), len(body)) for number, body in enumerate(bodies)]
    source = FakeSource({item.key: body for item, body in zip(files, bodies, strict=True)})
    splits = split_files(files, (), split_bytes)
    with ahead_of(source, splits, chunk_bytes) as ahead:
        for index, split in enumerate(splits):
            got = b"".join(bytes(memoryview(chunk)) for chunk in ahead.chunks(index))
            assert got == source.bodies[split.file.key][max(split.start - 1, 0) :]


class SlowSource(FakeSource):
    """Answers its first requests when ``expected`` of them are under way at once."""

    def __init__(self, bodies: dict[str, bytes], expected: int) -> None:
        super().__init__(bodies)
        self._together = threading.Barrier(expected)
        self._first = iter(range(expected))
        self._lock = threading.Lock()
        self._under_way = 0
        self.most = 0
        """Requests that were under way at once."""

    def fetch(self, file: ObjectVersion, start: int, end: int) -> bytes:
        with self._lock:
            self._under_way += 1
            self.most = max(self.most, self._under_way)
            is_first = next(self._first, None) is not None
        if is_first:
            self._together.wait(10)
        with self._lock:
            self._under_way -= 1
        return super().fetch(file, start, end)


@pytest.mark.parametrize("requests", [S3_REQUESTS, Requests(1, 1), Requests(4, 32), Requests(3, 7)])
def test_as_many_blocks_of_small_files_are_under_way_at_once_as_the_store_wants(requests: Requests) -> None:
    # Given more files than the blocks that are under way hold, in a store that takes its time
    files = [file(str(number), 3) for number in range(480)]
    source = SlowSource({item.key: f"{number:03}".encode() for number, item in enumerate(files)}, requests.ahead)
    # When
    with ReadAhead(source, split_files(files, (), 10), 8, requests) as ahead:  # type: ignore[arg-type]
        read = [b"".join(map(bytes, ahead.chunks(index))) for index in range(480)]
    # Then
    assert read == [f"{number:03}".encode() for number in range(480)]
    assert source.most == requests.ahead
    assert len(source.requests) == 480


def test_requested_bytes_are_bounded() -> None:
    large = file("a", 1 << 40)
    source = FakeSource({"a": b""})
    with ahead_of(source, split_files([large], (), 1 << 38), CHUNK_BYTES) as ahead:
        next(iter(ahead.chunks(0)))
    assert sum(end - start for _, start, end in source.requests) <= MAX_BYTES_AHEAD + 2 * CHUNK_BYTES


def test_a_split_that_ends_early_leaves_the_next_one_whole() -> None:
    files = [file("a", 9), file("b", 4)]
    source = FakeSource({"a": b"123456789", "b": b"next"})
    with ahead_of(source, split_files(files, (), 100), 2) as ahead:
        assert bytes(next(iter(ahead.chunks(0)))) == b"12"
        assert b"".join(map(bytes, ahead.chunks(1))) == b"next"


def test_an_unreadable_small_file_does_not_affect_its_neighbours() -> None:
    # Given more files than requests, so that one thread reads several
    files = [file(str(number), 4) for number in range(1_000)]
    source = FakeSource({item.key: b"next" for number, item in enumerate(files) if number % 7})
    with ahead_of(source, split_files(files, (), 100), 8) as ahead:
        for number in range(len(files)):
            if number % 7 == 0:
                with pytest.raises(UnreadableFileError):
                    list(ahead.chunks(number))
            else:
                assert b"".join(map(bytes, ahead.chunks(number))) == b"next"
