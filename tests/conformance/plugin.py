"""A plugin of pytest: tests of lake and router on servers other than moto, and a record of their requests.

    pytest -p tests.conformance.plugin --dynamodb http://127.0.0.1:8000 --requests requests.json tests/unit/router

Only tests with a world run, because the others send no request.
"""

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient

from tests.unit.lake import world
from tests.unit.router.emr import FakeEmr
from tests.unit.router.event_bridge import FakeEventBridge
from tests.unit.router.glue import FakeGlue

FAKES = {"glue": FakeGlue, "emr-serverless": FakeEmr, "events": FakeEventBridge}
WORLDS = {"world", "deployment"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--dynamodb", help="endpoint of a DynamoDB in place of moto's")
    parser.addoption("--s3", help="endpoint of an S3 in place of moto's")
    parser.addoption("--requests", type=Path, help="file for the requests, each distinct set of parameters once")


def pytest_configure(config: pytest.Config) -> None:
    for service in ("dynamodb", "s3"):
        if endpoint := config.getoption(f"--{service}"):
            world.ENDPOINTS[service] = endpoint
    world.clients()[0].meta.events.register("before-sign.s3.DeleteBucket", _with_all_objects)
    if path := config.getoption("--requests"):
        requests: dict[str, Any] = {}
        _record_requests(requests)
        config.add_cleanup(lambda: path.write_text(json.dumps(list(requests.values())), encoding="utf-8"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if WORLDS & set(getattr(item, "fixturenames", ()))]


def _with_all_objects(request: Any, **_: Any) -> None:
    """MinIO deletes a non-empty bucket if this header requests it."""
    request.headers["x-minio-force-delete"] = "true"


def _record_requests(requests: dict[str, Any]) -> None:
    """Keep one request of each operation and set of parameters, in ``requests``."""

    def keep(service: str, operation: str, parameters: dict[str, Any]) -> None:
        shape = f"{service}.{operation} {sorted(_names(parameters))}"
        requests.setdefault(shape, [service, operation, json.loads(json.dumps(parameters, default=str))])

    send = BaseClient._make_api_call  # type: ignore[attr-defined]

    @wraps(send)
    def send_and_keep(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
        keep(client.meta.service_model.service_name, operation, parameters)
        return send(client, operation, parameters)

    BaseClient._make_api_call = send_and_keep  # type: ignore[attr-defined]
    client_of: Callable[..., Any] = boto3.client
    for service, fake in FAKES.items():
        operations = client_of(service, region_name=world.REGION).meta.method_to_api_mapping
        for name in vars(fake).keys() & operations.keys():
            setattr(fake, name, _kept(getattr(fake, name), service, operations[name], keep))


def _kept(method: Callable[..., Any], service: str, operation: str, keep: Callable[..., None]) -> Callable[..., Any]:
    @wraps(method)
    def call(fake: Any, *arguments: Any, **parameters: Any) -> Any:
        # A test's subclass passes its caller's parameters by position.
        if not arguments:
            keep(service, operation, parameters)
        return method(fake, *arguments, **parameters)

    return call


def _names(value: Any) -> set[str]:
    """The names of all parameters, and of their members."""
    if isinstance(value, dict):
        return {*value, *(name for item in value.values() for name in _names(item))}
    if isinstance(value, list | tuple):
        return {name for item in value for name in _names(item)}
    return set()
