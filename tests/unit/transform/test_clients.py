"""Clients of a process: one session, whose credentials are asked for patiently and used only while they are valid."""

from collections.abc import Iterator
from datetime import timedelta

import botocore.credentials
import pytest
from botocore.exceptions import NoCredentialsError

from lake.errors import TransientError
from lake.manifest import ObjectVersion
from transform import clients
from transform.give_up import fault_of
from transform.source import Source

REGION = "eu-central-1"
FILE = ObjectVersion("input", "orders/a.ndjson", "e", 10, "2026-11-22T10:00:00Z")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process on Glue: its credentials come from a service, and no region is in the environment."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    clients.session.cache_clear()
    yield
    clients.session.cache_clear()


def test_every_client_and_reader_uses_the_region_of_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a process without a region in its environment, as on Glue.
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    # When it opens each kind of client.
    engines = clients.engine_clients(REGION, ["glue", "emr-serverless"]).values()
    opened = (clients.s3_client(REGION), clients.dynamodb_client(REGION), *engines)
    # Then all of them, and the reader, which follows no redirect to another region, are of the job's region.
    assert [client.meta.region_name for client in opened] == [REGION] * 4
    assert clients.object_store(REGION, "input").config["region"] == REGION


def test_all_clients_of_a_process_share_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given credentials of a role.
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    asked: list[object] = []
    resolve = botocore.credentials.CredentialResolver.load_credentials

    def counted(resolver: botocore.credentials.CredentialResolver) -> object:
        asked.append(resolver)
        return resolve(resolver)

    monkeypatch.setattr(botocore.credentials.CredentialResolver, "load_credentials", counted)
    # When two tasks open their clients and readers, one after the other.
    for _ in range(2):
        clients.s3_client(REGION)
        clients.object_store(REGION, "input")
    # Then the credentials were looked for once.
    assert len(asked) == 1


def test_a_read_without_credentials_is_tried_again() -> None:
    with pytest.raises(TransientError, match="Unable to locate credentials") as error:
        Source(REGION, None).fetch(FILE, 0, 10)
    fault = fault_of(error.value)
    assert fault is not None
    assert "there are no valid credentials" in fault.cause


def test_a_process_that_once_had_no_credentials_looks_for_them_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoCredentialsError):
        clients.object_store(REGION, "input")
    # When the service answers later.
    found = botocore.credentials.Credentials("key", "secret")
    monkeypatch.setattr(botocore.credentials.CredentialResolver, "load_credentials", lambda _: found)
    assert clients.object_store(REGION, "input")


def test_readers_ask_again_before_botocores_credentials_end() -> None:
    # Given credentials that botocore gives out for the last time: later it waits for new ones.
    left = timedelta(seconds=vars(botocore.credentials)["_DEFAULT_MANDATORY_REFRESH_TIMEOUT"])
    # Then a reader asks again while they are valid.
    assert left > clients.CREDENTIALS_KEPT
