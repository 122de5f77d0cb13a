"""What a person asks for wrongly is an answer, and no error of a function: an alarm tells people of each error."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from lake.errors import InvalidInputError
from router.plan import handler as plan
from router.requests import backfill, promote, reprocess, resubmit

if TYPE_CHECKING:
    from tests.unit.router.conftest import Deployment

ATTRIBUTES = ("function_name", "memory_limit_in_mb", "invoked_function_arn", "aws_request_id")
REFUSED = [
    (backfill, {"action": "validate", "input": {"dataset": "orders"}}, "backfill needs from, to"),
    (plan, {"execution": "dry-run-1", "dataset": "nowhere", "dryRun": True}, "dataset = 'nowhere' is unknown"),
    (promote, {"dataset": "nowhere"}, "dataset = 'nowhere' is unknown"),
    (promote, {"file": "s3://input/a"}, "promote does not know the input field 'file'"),
    (reprocess, {"manifests": ["20261120"]}, "20261120"),
    (reprocess, [], "reprocess needs an object as its input"),
    (resubmit, {"resubmission": "../plans"}, "resubmission = '../plans' is not a valid name"),
]


def invoke(module: ModuleType, deployment: Deployment, event: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call the function as Lambda does."""
    monkeypatch.setattr(module, "container_services", lambda: deployment.services)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    return module.handler(event, SimpleNamespace(**{name: f"the-{name}" for name in ATTRIBUTES}))


@pytest.mark.filterwarnings("ignore:No application metrics to publish")
@pytest.mark.parametrize(("module", "event", "message"), REFUSED)
def test_a_wrong_request_is_answered(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, module: ModuleType, event: Any, message: str
) -> None:
    answer = invoke(module, deployment, event, monkeypatch)
    assert set(answer) == {"refused", "error"}
    assert message in answer["refused"]
    assert answer["error"] == ("UnknownDatasetError" if "dataset = " in message else "InvalidInputError")


def test_a_state_machine_gets_the_error_that_it_catches(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given the field with which the state machine of a backfill calls reprocess
    event = {"dataset": "nowhere", "raiseRefusal": True}
    with pytest.raises(InvalidInputError, match="dataset = 'nowhere' is unknown"):
        invoke(reprocess, deployment, event, monkeypatch)
    # And the field changes nothing of a request that is valid
    answer = invoke(reprocess, deployment, {"from": "2026-11-20", "raiseRefusal": True}, monkeypatch)
    assert answer["queued"] == 0
