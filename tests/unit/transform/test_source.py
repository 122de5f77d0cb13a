"""Errors of reading: a network error is transient whatever the key is, a structured answer decides about the file."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from obstore.exceptions import GenericError

from lake.errors import TransientError
from lake.manifest import ObjectVersion
from transform import source as source_module
from transform.give_up import fault_of
from transform.source import Source, UnreadableFileError

FILE = ObjectVersion("input", "AccessDenied/InvalidRange.ndjson", "e", 8, "2026-03-04T11:59:00+00:00", "v1")
KEY = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd"


class FailingClient:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def get_object(self, **_: Any) -> Any:
        raise self._error


def source_that_fails(
    monkeypatch: pytest.MonkeyPatch, error: Exception, input_keys: tuple[str, ...] | None = None
) -> Source:
    """obstore fails without a type that says why, and boto3 with ``error``."""

    def fail(*_: Any, **__: Any) -> Any:
        raise GenericError(f"error sending request for url (http://s3/{FILE.bucket}/{FILE.key})")

    monkeypatch.setattr(source_module.obstore, "get", fail)  # type: ignore[attr-defined]
    client: Any = FailingClient(error)
    store: Any = object()
    return Source(lambda _: store, lambda: client, input_keys)


def test_a_key_with_the_name_of_an_error_does_not_make_a_network_error_permanent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = source_that_fails(monkeypatch, EndpointConnectionError(endpoint_url=f"http://s3/{FILE.key}"))
    with pytest.raises(TransientError, match="is tried again"):
        source.fetch(FILE, 0, 8)


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
        source_that_fails(monkeypatch, error).fetch(FILE, 0, 8)


def test_a_disabled_key_of_the_whole_input_excludes_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given: the key that the settings name for the input
    error = ClientError({"Error": {"Code": "KMS.DisabledException", "Message": f"{KEY} is disabled."}}, "GetObject")
    # When
    with pytest.raises(TransientError) as raised:
        source_that_fails(monkeypatch, error, (KEY,)).fetch(FILE, 0, 8)
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
        source_that_fails(monkeypatch, error, (KEY,)).fetch(FILE, 0, 8)


@pytest.mark.parametrize("code", ["AccessDenied", "NoSuchBucket", "SlowDown"])
def test_what_is_not_proven_to_belong_to_the_file_does_not_exclude_it(
    monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    # Given a fast reader that says "not found", which can be the bucket
    source = source_that_fails(monkeypatch, ClientError({"Error": {"Code": code, "Message": ""}}, "GetObject"))

    def missing(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError(FILE.key)

    monkeypatch.setattr(source_module.obstore, "get", missing)  # type: ignore[attr-defined]
    # When / Then
    with pytest.raises(TransientError):
        source.fetch(FILE, 0, 8)
