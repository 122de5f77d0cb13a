"""What leaves a function: for every error of every call that it makes, a name that the state machines know."""

import ast
from collections import deque
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import NoRegionError

import router
from infra.functions import SPECS
from lake.errors import OwnershipError, TerminalError, TransientError
from lake.ledger.table import RefusedError
from lake.manifest import Lane
from router.entry import with_product_errors
from tests.unit.router import settling
from tests.unit.router.conftest import Deployment, new_deployment
from tests.unit.router.promote.promoting import owned
from tests.unit.router.raising import RaisingClients, errors_of

CONTEXT = SimpleNamespace(
    function_name="test",
    memory_limit_in_mb=512,
    invoked_function_arn="arn:aws:lambda:eu-central-1:111122223333:function:test",
    aws_request_id="8f4b6c1e",
)
RANGE = {"dataset": "orders", "from": "2000-01-01", "to": "2100-01-01"}


def backlog(deployment: Deployment) -> dict[str, Any]:
    """Two manifests of an hour, and one that a run holds."""
    deployment.claimed(deployment.queued("c.json"), deployment.glue.start_job_run(JobName="batch-job")["JobRunId"])
    deployment.queued("a.json")
    deployment.queued("b.json")
    return {"execution": "overnight"}


def listed(deployment: Deployment) -> dict[str, Any]:
    deployment.raw_s3.put_object(Bucket="input", Key="orders/a.json", Body=b"{}\n")
    return {"action": "find", "request": RANGE, "token": None}


def unknown_folder(deployment: Deployment) -> dict[str, Any]:
    deployment.raw_s3.put_object(Bucket="input", Key="orders/a.json", Body=b"{}\n")
    return {"action": "validate", "input": RANGE}


def held(deployment: Deployment) -> dict[str, Any]:
    (row,) = settling.planned(deployment, "a.json")
    deployment.claimed(row, deployment.glue.start_job_run(JobName="batch-job")["JobRunId"])
    return {"run": "s3://control/plans/overnight/runs/00000.json"}


def converted(deployment: Deployment) -> dict[str, Any]:
    (row,) = settling.planned(deployment, "a.json")
    settling.done(deployment, row, rows=3, rejects=1)
    return {"execution": "overnight"}


def new_dataset(deployment: Deployment) -> dict[str, Any]:
    deployment.ledger.datasets.register("orders")
    return {}


def new_columns(deployment: Deployment) -> dict[str, Any]:
    deployment.ledger.datasets.register("orders")
    import_module("router.catalog.handler").catalog(deployment.services)
    deployment.ledger.datasets.reserve_columns("orders", ["amount"], 1000)
    return {}


def window(deployment: Deployment) -> dict[str, Any]:
    return {"action": "start"}


def watched(deployment: Deployment) -> dict[str, Any]:
    deployment.queued("a.json", lane=Lane.STREAM)
    return {"action": "watch"}


def stuck(deployment: Deployment) -> dict[str, Any]:
    deployment.glue.start_job_run(JobName="stream-job")
    return {"action": "kill"}


def waiting(deployment: Deployment) -> dict[str, Any]:
    owned(deployment, "a.json", "b.json")
    return {"files": ["s3://input/orders/a.json"]}


def ended(deployment: Deployment) -> dict[str, Any]:
    converted(deployment)
    deployment.ledger.datasets.register("orders")
    return {"dataset": "orders", "only": "all", "request": "r1"}


def crashed(deployment: Deployment) -> dict[str, Any]:
    """A manifest with objects whose lease has expired, and one of the stream lane without a pointer."""
    converted(deployment)
    deployment.queued("b.json", lane=Lane.STREAM)
    deployment.claimed(deployment.queued("c.json"))
    deployment.wait(timedelta(hours=2))
    return {}


CASES = (
    ("backfill", unknown_folder),
    ("backfill", listed),
    ("catalog", new_dataset),
    ("catalog", new_columns),
    ("plan", backlog),
    ("promote", waiting),
    ("reprocess", ended),
    ("run_status", held),
    ("settle", converted),
    ("sweep", crashed),
    ("stream_control", window),
    ("stream_control", watched),
    ("stream_control", stuck),
)


MODULES = {spec.name: spec.module for spec in SPECS}


def invoke(function: str, event: dict[str, Any], deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = import_module(f"router.{MODULES[function]}")
    monkeypatch.setattr(module, "container_services", lambda: deployment.services)
    # Without its client plan takes the quotas of the settings.
    monkeypatch.setattr(module, "_service_quotas", lambda: None, raising=False)
    # No hour of these is complete.
    monkeypatch.setattr(module, "_event_bridge", lambda: None, raising=False)
    return module.handler(event, CONTEXT)


@pytest.mark.repeats_lines
@pytest.mark.filterwarnings("ignore:No application metrics to publish")
@pytest.mark.parametrize(("function", "given"), CASES, ids=lambda case: getattr(case, "__name__", case))
def test_every_error_of_every_call_leaves_under_a_name_that_decides_its_retry(
    function: str, given: Callable[[Deployment], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: the operations of an invocation without errors
    with new_deployment() as deployment:
        event, clients = given(deployment), RaisingClients()
        clients.install(deployment)
        invoke(function, event, deployment, monkeypatch)
    # When: each of them raises each of its errors
    names: list[tuple[str, str, str, str]] = []
    for operation in sorted(clients.operations):
        errors = deque(errors_of(operation))
        while errors:
            # An invocation that ends with an error leaves its state as it was; one that copes with it does not.
            with new_deployment() as deployment:
                names += names_until_one_copes(function, given(deployment), deployment, operation, errors, monkeypatch)
    # Then
    assert names
    assert [name for name in names if name[-1] != name[-2]] == []


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (RefusedError(), TransientError, "another process changed the same row"),
        (ZeroDivisionError("division by zero"), TerminalError, "ZeroDivisionError: division by zero: the function's"),
        (NoRegionError(), TerminalError, "You must specify a region.: a repetition would fail in the same way"),
    ],
)
def test_what_is_no_answer_of_aws_leaves_under_a_name_of_the_product_too(
    error: Exception, kind: type[Exception], message: str
) -> None:
    # Given
    def handler() -> None:
        raise error

    # When, Then
    with pytest.raises(kind, match=message) as raised:
        with_product_errors(handler)()
    assert type(raised.value) is kind
    assert raised.value.__cause__ is error


def test_errors_of_the_product_keep_their_class() -> None:
    def handler() -> None:
        raise OwnershipError("later")

    with pytest.raises(OwnershipError):
        with_product_errors(handler)()


def test_every_handler_is_decorated_outermost() -> None:
    for module in MODULES.values():
        file = Path(router.__file__).parent / f"{module.replace('.', '/')}.py"
        (handler,) = (
            node
            for node in ast.parse(file.read_text(encoding="utf-8")).body
            if isinstance(node, ast.FunctionDef) and node.name == "handler"
        )
        assert ast.unparse(handler.decorator_list[0]) == "with_product_errors", file


def names_until_one_copes(
    function: str,
    event: dict[str, Any],
    deployment: Deployment,
    operation: str,
    errors: deque[tuple[Exception, bool]],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[tuple[str, str, str, str]]:
    """Take errors until an invocation copes with one: operation, error, the expected root class and the raised one."""
    clients = RaisingClients(failing=operation)
    clients.install(deployment)
    while errors:
        clients.error, passes = errors.popleft()
        try:
            invoke(function, event, deployment, monkeypatch)
        except (TransientError, TerminalError) as error:
            root = TransientError if isinstance(error, TransientError) else TerminalError
            expected = TransientError if passes else TerminalError
            yield operation, repr(clients.error), expected.__name__, root.__name__
        else:
            assert clients.raised
            return
