"""What functions have in common: services, listings, the names of their errors, how an invalid request is refused."""

import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.exceptions import ClientError, NoRegionError
from botocore.parsers import ResponseParserError
from botocore.utils import parse_timestamp

from infra.functions import ROUTE_TIMEOUT_SECONDS, SPECS, FunctionSpec
from lake.engines.emr_serverless import EmrLaunch
from lake.errors import InvalidInputError, OwnershipError, TerminalError
from lake.settings import dump_settings, parse_settings
from router.entry import lambda_handler
from router.plan import handler as plan
from router.requests import backfill, promote, reprocess, resubmit
from router.requests.selection import encode_token
from router.services import container_services, new_session, parse_time
from router.telemetry import Metric, count, metrics
from tests.unit.lake.world import RESOURCES
from tests.unit.router.conftest import Deployment
from tests.unit.router.emr import LAUNCH

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("engine", "launch"), [("glue", None), ("emr-serverless", LAUNCH)])
def test_settings_are_parsed_once_per_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, launch: EmrLaunch | None
) -> None:
    # Given the environment of a Lambda; with streaming jobs on EMR Serverless it has the parameters of their start
    file = tmp_path / "settings.json"
    settings = parse_settings({"stage": "test", "stream": {"engine": engine}})
    file.write_text(dump_settings(settings), encoding="utf-8")
    environment = {**RESOURCES.to_environment(), "SETTINGS_FILE": str(file), "AWS_DEFAULT_REGION": "eu-west-1"}
    for key, value in (environment | ({"STREAM_LAUNCH": launch.to_text()} if launch else {})).items():
        monkeypatch.setenv(key, value)
    container_services.cache_clear()
    # When
    first = container_services()
    file.unlink()
    # Then
    assert (first.resources, first.settings) == (RESOURCES, settings)
    assert first.clock().tzinfo is not None
    assert first.stream_launch == launch
    assert set(first.job_clients) == {"glue", engine}
    assert container_services() is first
    # And an unresponsive engine leaves route enough time to acknowledge: botocore waits up to 2**n seconds
    for config in (client.meta.config for client in first.job_clients.values()):
        tries = config.retries["total_max_attempts"]
        waits = sum(2**number for number in range(tries - 1))
        assert tries * max(config.connect_timeout, config.read_timeout) + waits < ROUTE_TIMEOUT_SECONDS - 20
    container_services.cache_clear()


@pytest.mark.parametrize(
    "value", ["2026-11-20T09:30:00.000Z", "2026-11-20T09:30:00Z", "Fri, 20 Nov 2026 09:30:00 GMT", 1795167000]
)
def test_times_of_every_format_are_read_and_those_of_listings_without_botocores_parser(value: Any) -> None:
    assert parse_time(value) == parse_timestamp(value) == datetime(2026, 11, 20, 9, 30, tzinfo=UTC)


def test_handlers_import_nothing_of_the_data_plane() -> None:
    imports = "; ".join(f"import router.{spec.module}" for spec in SPECS)
    heavy = "('pyspark', 'pyarrow', 'transform', 'obstore', 'ndjson_arrow', 'pydantic')"
    code = f"import sys; {imports}; print([name for name in sys.modules if name in {heavy}])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert answer.stdout.strip() == "[]"


ATTRIBUTES = ("function_name", "memory_limit_in_mb", "invoked_function_arn", "aws_request_id")
CONTEXT = SimpleNamespace(**{name: f"the-{name}" for name in ATTRIBUTES})


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ZeroDivisionError("division by zero"), TerminalError, "ZeroDivisionError: division by zero: the function's"),
        (OwnershipError("later"), OwnershipError, "later"),
        (NoRegionError(), TerminalError, "You must specify a region.: a retry would fail in the same way"),
    ],
)
@pytest.mark.parametrize("answers_refusals", [True, False])
def test_every_error_becomes_an_error_of_the_product(
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    kind: type[Exception],
    message: str,
    answers_refusals: bool,
) -> None:
    # Given a function that fails after it has counted something
    monkeypatch.setattr("router.entry.container_services", lambda: None)
    handler = lambda_handler(Mock(side_effect=error), answers_refusals=answers_refusals)
    count(Metric.ARRIVALS, 1)
    # When, Then
    with pytest.raises(kind, match=message) as raised:
        handler({}, CONTEXT)
    assert type(raised.value) is kind
    assert error in (raised.value, raised.value.__cause__)
    # And its metrics are written
    assert not metrics.metric_set


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_handler_raises_only_errors_of_the_product(monkeypatch: pytest.MonkeyPatch, spec: FunctionSpec) -> None:
    # Given a container whose environment cannot be used
    error = ZeroDivisionError("division by zero")
    monkeypatch.setattr("router.entry.container_services", Mock(side_effect=error))
    # When, Then
    with pytest.raises(TerminalError, match="division by zero"):
        import_module(f"router.{spec.module}").handler({}, CONTEXT)


RANGE = {"dataset": "orders", "from": "2000-01-01", "to": "2100-01-01"}
MANIFEST, FILES = "20261120T093000" + "0" * 20, ["s3://a/b"]


def validate(**changes: Any) -> dict[str, Any]:
    return {"action": "validate", "input": {**RANGE, **changes}}


REFUSED = [
    (backfill, {"action": "search"}, "action = 'search' is unknown: expected validate or find"),
    (backfill, {"action": "validate", "input": None}, "backfill needs an object as its input: pass {"),
    (backfill, {"action": "validate", "input": {"dataset": "orders"}}, "backfill needs from, to: pass for example {"),
    (backfill, validate(dry_run=True), "backfill does not know the input field 'dry_run': pass only dataset, from, to"),
    (backfill, validate(**{"from": "2101-01-01"}), "from = '2101-01-01' is later than to = '2100-01-01': pass the"),
    (backfill, validate(dataset="order"), "dataset = 'order' is unknown: pass one of clicks, "),
    (backfill, validate(dataset=""), "dataset = '' is unknown"),
    (backfill, validate(to="now"), "to = 'now' is not a valid time: pass a UTC day such as"),
    (backfill, validate(dryRun=1), "dryRun = 1 is neither true nor false"),
    *(
        (backfill, {"action": "find", "request": RANGE, "token": token}, "token is not one that find has returned")
        for token in ("xyz", encode_token(reprocess.ReprocessProgress()))
    ),
    (plan, {"execution": "x", "datset": "x"}, "overnight does not know the input field 'datset': pass only dataset, "),
    (plan, {"execution": "x", "found": {}}, "overnight does not know the input field 'found': pass only dataset, "),
    (plan, {"execution": ""}, "execution is missing"),
    (plan, {"execution": "x", "engine": "glue"}, "engine = 'glue' is not allowed: pass one of glue-flex, or add it to"),
    (plan, {"execution": "x", "dataset": 7}, "dataset = 7 is unknown: pass one of clicks, orders"),
    (plan, {"execution": "x", "to": "2026-02-30"}, "to = '2026-02-30' is not a valid time"),
    (plan, {"execution": "x", "to": "2026-02-2\uff10"}, "to = '2026-02-2\uff10' is not a valid time"),
    (plan, {"execution": "x", "from": 20261120}, "from = 20261120 is not a valid time"),
    (promote, {"file": "s3://input/a"}, "promote does not know the input field 'file'"),
    (promote, {}, "promote was given neither files nor a dataset or hours: pass"),
    (promote, {"files": FILES, "dataset": "orders"}, "promote was given files and a dataset or hours: pass"),
    (promote, {"files": "s3://input/a"}, "files = 's3://input/a' is not a valid list: pass"),
    (promote, {"files": []}, "files = [] is not a valid list: pass"),
    (promote, {"files": ["/input/a"]}, "'/input/a' is not a valid S3 URI: pass s3://bucket/key"),
    (promote, {"files": [7]}, "7 is not a valid S3 URI"),
    (promote, {"files": ["s3://input/\udcff"]}, r"'s3://input/\udcff' is not a valid S3 URI"),
    (reprocess, [], "reprocess needs an object as its input"),
    (reprocess, {"manifests": [MANIFEST], "files": FILES}, "reprocess was given manifests and files: pass"),
    (reprocess, {"manifests": [MANIFEST], "to": "2026-11-20"}, "reprocess was given manifests and a dataset or hours"),
    (reprocess, {"manifests": ["../x"]}, "'../x' is not a valid manifest id: pass one that explain or a verdict names"),
    (reprocess, {"files": FILES, "all": "yes"}, "all = 'yes' is neither true nor false"),
    (reprocess, {"files": FILES}, "request = None is not a valid id: pass a new one of up to 128 characters"),
    (reprocess, {"files": FILES, "request": "a b"}, "request = 'a b' is not a valid id"),
    (reprocess, {"from": "2026-11-20", "request": "r", "token": "xyz"}, "token is not one that reprocess has returned"),
    (resubmit, {}, "resubmission = None is not a valid name"),
    (resubmit, {"resubmission": "../plans"}, "resubmission = '../plans' is not a valid name"),
    (resubmit, {"name": "x"}, "resubmit does not know the input field 'name'"),
]


def invoke(module: ModuleType, deployment: Deployment, event: Any) -> Any:
    """Call the function as Lambda does."""
    deployment.patch.setattr("router.entry.container_services", lambda: deployment.services)
    deployment.patch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    return module.handler(event, CONTEXT)


@pytest.mark.parametrize(("module", "event", "message"), REFUSED)
def test_a_wrong_request_is_answered(deployment: Deployment, module: ModuleType, event: Any, message: str) -> None:
    answer = invoke(module, deployment, event)
    assert set(answer) == {"refused", "error"}
    assert answer["refused"].startswith(message)
    assert answer["error"] == ("UnknownDatasetError" if "dataset = " in message else "InvalidInputError")
    assert deployment.faults.writes == []


def test_a_state_machine_gets_the_error_that_it_catches(deployment: Deployment) -> None:
    # Given the field with which the state machine of a backfill calls reprocess
    event = {"dataset": "nowhere", "raiseRefusal": True}
    with pytest.raises(InvalidInputError, match="dataset = 'nowhere' is unknown"):
        invoke(reprocess, deployment, event)
    # And the field changes nothing in a valid request
    event = {"from": "2026-11-20", "request": "r", "raiseRefusal": True}
    answer = invoke(reprocess, deployment, event)
    assert answer["queued"] == 0


NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
READ = ("Key", "Size", "ETag", "LastModified")
TIME = "2026-11-20T09:30:00.000Z"
PLAIN = f"<Contents><Key>a</Key><LastModified>{TIME}</LastModified><ETag>&quot;0f&quot;</ETag><Size>7</Size></Contents>"


@pytest.mark.parametrize(
    "objects",
    [
        "",
        PLAIN + PLAIN.replace("<Size>", "<ChecksumAlgorithm>CRC32</ChecksumAlgorithm><Size>"),
        PLAIN.replace("&quot;0f&quot;", '"0f-2"') + "<CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes>",
        PLAIN + PLAIN.replace(">a<", ">a&amp;b&#233;<"),
        PLAIN + PLAIN.replace("</Size>", "</Size><Owner><ID>x</ID></Owner>"),
        "<Contents>\n<Key>late</Key>\n<Size>1</Size></Contents>",
    ],
    ids=["none", "plain", "an ETag in quotes", "an encoded key", "members of a member", "other members"],
)
def test_every_way_to_write_an_object_is_read_as_by_botocore(objects: str) -> None:
    # Given the same answer for both
    body = f"<ListBucketResult xmlns='{NAMESPACE}'><Name>lake</Name>{objects}</ListBucketResult>".encode()
    expected, found = (answered(s3, body) for s3 in clients())
    # When, Then
    for page in (expected, found):
        page["Contents"] = [{name: item.get(name) for name in READ} for item in page.get("Contents", [])]
        page.pop("ResponseMetadata")
    assert found == expected


@pytest.mark.parametrize("body", [b"<Error><Code>InternalError</Code><Message>m</Message></Error>", b"<List", b"\xff"])
def test_an_answer_that_is_not_a_listing_is_reported_by_botocore(body: bytes) -> None:
    for s3 in clients():
        with pytest.raises((ClientError, ResponseParserError)):
            answered(s3, body)


@cache
def clients() -> list[Any]:
    """Botocore's own client, and the client of the functions' sessions."""
    options: Any = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "us-east-1"}
    options["config"] = Config(retries={"total_max_attempts": 1})
    return [session.client("s3", **options) for session in (boto3.Session(), new_session())]


def answered(s3: Any, body: bytes) -> Any:
    """The listing of a client whose service answers with this body and status 200."""
    raw = type("Raw", (BytesIO,), {"stream": lambda self, **_: iter([self.read()])})

    def answer(request: Any, **_: Any) -> AWSResponse:
        response = AWSResponse(request.url, 200, HTTPHeaders(), raw(body))
        response.headers["x-amz-request-id"] = "id"
        return response

    s3.meta.events.register("before-send", answer)
    try:
        return s3.list_objects_v2(Bucket="lake")
    finally:
        s3.meta.events.unregister("before-send", answer)
