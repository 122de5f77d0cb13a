"""Reading the input: who is responsible for an error, and chunks in order, whichever request ends first.

All clients of a process have one session; its credentials are requested patiently and used only while valid.
"""

import errno
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any
from unittest.mock import Mock

import botocore.credentials
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError
from botocore.response import StreamingBody
from hypothesis import given
from hypothesis import strategies as st
from obstore.exceptions import GenericError

from lake import documents
from lake.errors import TransientError
from lake.manifest import ObjectVersion
from tests.unit.lake.world import file_of
from tests.unit.transform.job import FakeSource
from transform import clients
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


FOREIGN = KEY.replace("111122223333", "999988887777")
REFUSED = f"User: arn:aws:sts::1:assumed-role/jobs/x is not authorized to perform: kms:Decrypt on resource: {FOREIGN}"
Failing = Callable[..., Source]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Failing:
    """Makes a source: obstore fails without a typed reason; boto3 raises the error, or gives the answers."""

    def source(answer: Exception | list[Any], input_keys: tuple[str, ...] | None = None, error: Any = None) -> Source:
        text = f"error sending request for url (http://s3/{NAMED_FILE.bucket}/{NAMED_FILE.key})"
        get = Mock(side_effect=error or GenericError(text))
        monkeypatch.setattr(source_module.obstore, "get", get)  # type: ignore[attr-defined]
        monkeypatch.setattr(source_module, "object_store", Mock())
        client = Mock(**{"get_object.side_effect": answer})
        monkeypatch.setattr(source_module, "s3_client", lambda _: client)
        return Source("eu-central-1", input_keys)

    return source


def answer(code: str, message: str = "") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "GetObject")


@pytest.mark.parametrize(
    ("error", "keys", "reason"),
    [
        (answer("InvalidRange"), (), "shorter than the 8 bytes"),
        (answer("InvalidObjectState"), (), "archived: restore it, then run: hybrid-router reprocess '?s3://"),
        (answer("KMS.DisabledException"), (), "encryption key .* then run: hybrid-router reprocess '?s3://"),
        (answer("NoSuchVersion"), (), "deleted"),
        (answer("NoSuchKey"), (), "deleted"),
        (answer("InvalidRequest"), (), "SSE-C"),
        # A key of the uploader that the role may not use, and that is not the key of the input
        (answer("AccessDenied", REFUSED), (KEY,), f"KMS key {FOREIGN}.* then run: hybrid-router reprocess"),
    ],
)
def test_a_structured_answer_decides(failing: Failing, error: Exception, keys: tuple[str, ...], reason: str) -> None:
    with pytest.raises(UnreadableFileError, match=reason):
        failing(error, keys).fetch(NAMED_FILE, 0, 8)


@pytest.mark.parametrize("input_keys", [(KEY,), None])
def test_a_disabled_key_of_the_whole_input_excludes_no_file(
    failing: Failing, input_keys: tuple[str, ...] | None
) -> None:
    # Given: the key that the settings name for the input, or a bucket outside the stack whose key they do not name
    error = answer("KMS.DisabledException", f"{KEY} is disabled.")
    # When
    with pytest.raises(DeniedFileError) as raised:
        failing(error, input_keys).fetch(NAMED_FILE, 0, 8)
    # Then: the manifest waits, and its reason states what to do
    assert "enable the key of the bucket again" in str(fault_of(raised.value))


@pytest.mark.parametrize(
    "error",
    [
        *(answer(code) for code in ("AccessDenied", "NoSuchBucket", "SlowDown")),
        # The key contains the names of other errors.
        EndpointConnectionError(endpoint_url=f"http://s3/{NAMED_FILE.key}"),
    ],
)
def test_what_is_not_proven_to_belong_to_the_file_does_not_exclude_it(failing: Failing, error: Exception) -> None:
    # Given a fast reader that answers "not found", which can refer to the bucket
    source = failing(error, error=FileNotFoundError(NAMED_FILE.key))
    # When / Then
    with pytest.raises(TransientError, match="is retried"):
        source.fetch(NAMED_FILE, 0, 8)


class PanicException(BaseException):
    """Replaces obstore's error, which no module exports."""


def test_a_reader_without_file_descriptors_for_its_runtime_is_a_fault_of_the_machine(failing: Failing) -> None:
    source = failing(OSError(errno.EMFILE, "too many open files"), error=[PanicException("no Tokio runtime")])
    # It panics until its process ends, with lines on stderr: a task calls it once.
    for _ in range(2):
        with pytest.raises(OSError, match="too many open files") as raised:
            source.fetch(NAMED_FILE, 0, 8)
        assert fault_of(raised.value) is not None


HEAD = {"ETag": '"e"', "ContentLength": 8}


@pytest.mark.parametrize("received", [5, 9])
@pytest.mark.parametrize(
    ("head", "faulty"),
    [
        (HEAD, None),
        ({"ContentLength": 5}, None),
        (EndpointConnectionError(endpoint_url="s3"), None),
        ({**HEAD, "ContentLength": 5}, "it has 5 bytes, and its event names 8"),
    ],
)
def test_an_answer_of_another_size_is_the_files_fault_only_if_s3_says_so(
    failing: Failing, received: int, head: Any, faulty: str | None
) -> None:
    # Given an answer whose header agrees with its bytes
    source = failing([], error=[Mock(**{"bytes.return_value": bytes(received), "meta": {"version": "v1"}})])
    source._client.head_object = Mock(side_effect=[head])  # type: ignore[method-assign]
    # When
    with pytest.raises(TransientError if faulty is None else UnreadableFileError, match=faulty) as raised:
        source.fetch(NAMED_FILE, 0, 8)
    # Then a proxy's answer uses up no attempt
    fault = fault_of(raised.value)
    assert (fault is not None and fault.passing) == (faulty is None)


def test_an_archived_version_null_under_a_newer_one_can_be_restored(failing: Failing) -> None:
    answers = [answer("PreconditionFailed"), answer("InvalidObjectState")]
    with pytest.raises(UnreadableFileError, match="archived: restore it"):
        failing(answers).fetch(replace(NAMED_FILE, version_id=None), 0, 8)


def test_a_body_that_trickles_ends_its_request_and_excludes_no_file(
    monkeypatch: pytest.MonkeyPatch, failing: Failing
) -> None:
    # Given a body that sends a byte every 100 seconds, so that no read times out
    monkeypatch.setattr(documents, "time", Mock(**{"monotonic.side_effect": count(0, 100)}))
    raw = Mock(**{"read.return_value": b"x"})
    source = failing([{"Body": StreamingBody(raw, 1 << 20)}])
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


def ahead_of(source: FakeSource, splits: list[Split], chunk_bytes: int) -> ReadAhead:
    return ReadAhead(source.fetch, splits, chunk_bytes)


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=5), st.integers(1, 70), st.integers(1, 20))
def test_a_split_gets_the_byte_before_it_and_everything_after_it(
    bodies: list[bytes], split_bytes: int, chunk_bytes: int
) -> None:
    files = [file_of(str(number), len(body)) for number, body in enumerate(bodies)]
    source = FakeSource({item.key: body for item, body in zip(files, bodies, strict=True)})
    splits = split_files(files, (), split_bytes)
    with ahead_of(source, splits, chunk_bytes) as ahead:
        for index, split in enumerate(splits):
            got = b"".join(bytes(memoryview(chunk)) for chunk in ahead.chunks(index))
            assert got == source.bodies[split.file.key][max(split.start - 1, 0) :]


class SlowSource(FakeSource):
    """Answers its first requests when ``expected`` of them are in progress at once."""

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
def test_the_store_sets_how_many_blocks_of_small_files_are_requested_at_once(requests: Requests) -> None:
    # Given more files than the blocks in progress hold, in a slow store
    files = [file_of(str(number), 3) for number in range(480)]
    source = SlowSource({item.key: f"{number:03}".encode() for number, item in enumerate(files)}, requests.ahead)
    # When
    with ReadAhead(source.fetch, split_files(files, (), 10), 8, requests) as ahead:
        read = [b"".join(map(bytes, ahead.chunks(index))) for index in range(480)]
    # Then
    assert read == [f"{number:03}".encode() for number in range(480)]
    assert source.most == requests.ahead
    assert len(source.requests) == 480


def test_requested_bytes_are_bounded() -> None:
    large = file_of("a", 1 << 40)
    source = FakeSource({"a": b""})
    with ahead_of(source, split_files([large], (), 1 << 38), CHUNK_BYTES) as ahead:
        next(iter(ahead.chunks(0)))
    assert sum(end - start for _, start, end in source.requests) <= MAX_BYTES_AHEAD + 2 * CHUNK_BYTES


def test_a_split_that_ends_early_leaves_the_next_one_whole() -> None:
    files = [file_of("a", 9), file_of("b", 4)]
    source = FakeSource({"a": b"123456789", "b": b"next"})
    with ahead_of(source, split_files(files, (), 100), 2) as ahead:
        assert bytes(next(iter(ahead.chunks(0)))) == b"12"
        assert b"".join(map(bytes, ahead.chunks(1))) == b"next"


def test_an_unreadable_small_file_does_not_affect_its_neighbours() -> None:
    # Given more files than requests, so that one thread reads several
    files = [file_of(str(number), 4) for number in range(1_000)]
    source = FakeSource({item.key: b"next" for number, item in enumerate(files) if number % 7})
    with ahead_of(source, split_files(files, (), 100), 8) as ahead:
        for number in range(len(files)):
            if number % 7 == 0:
                with pytest.raises(UnreadableFileError):
                    list(ahead.chunks(number))
            else:
                assert b"".join(map(bytes, ahead.chunks(number))) == b"next"


REGION = "eu-central-1"
SECRETS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@pytest.fixture
def on_glue(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The environment of a process on Glue: its credentials come from a service, and it has no region."""
    for name in (*SECRETS, "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    clients.session.cache_clear()
    yield monkeypatch
    clients.session.cache_clear()


def test_all_clients_of_a_process_share_its_session_and_have_the_region_of_the_job(
    on_glue: pytest.MonkeyPatch,
) -> None:
    # Given credentials of a role
    for name in SECRETS:
        on_glue.setenv(name, "key")
    resolvers: list[object] = []
    resolve = botocore.credentials.CredentialResolver.load_credentials

    def counted(resolver: botocore.credentials.CredentialResolver) -> object:
        resolvers.append(resolver)
        return resolve(resolver)

    on_glue.setattr(botocore.credentials.CredentialResolver, "load_credentials", counted)
    # When two tasks open their clients and readers, one after the other
    for _ in range(2):
        engines = clients.engine_clients(REGION, ["glue", "emr-serverless"]).values()
        opened = (clients.s3_client(REGION), clients.dynamodb_client(REGION), *engines)
        # Then all use the job's region, including the reader, which follows no redirect to another one
        assert [client.meta.region_name for client in opened] == [REGION] * 4
        assert clients.object_store(REGION, "input").config["region"] == REGION
    # And the credentials were looked up once
    assert len(resolvers) == 1


def test_a_process_that_once_had_no_credentials_tries_again(on_glue: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoCredentialsError):
        clients.object_store(REGION, "input")
    # When the service answers later.
    found = botocore.credentials.Credentials("key", "secret")
    on_glue.setattr(botocore.credentials.CredentialResolver, "load_credentials", lambda _: found)
    assert clients.object_store(REGION, "input")


def test_readers_ask_again_before_botocores_credentials_end() -> None:
    # Given credentials that botocore returns for the last time: later it waits for new ones.
    left = timedelta(seconds=vars(botocore.credentials)["_DEFAULT_MANDATORY_REFRESH_TIMEOUT"])
    # Then a reader requests them again while they are valid.
    assert left > clients.CREDENTIALS_KEPT
