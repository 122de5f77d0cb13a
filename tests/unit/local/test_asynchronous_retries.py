"""The local cloud repeats asynchronous invocations that have failed, as Lambda does."""

import threading

import pytest
from ministack.services import lambda_svc  # type: ignore[import-untyped]

from local.emulator_patches.lambda_functions import dispatch_to_lambda


@pytest.mark.parametrize(("config", "runs"), [({}, 3), ({"MaximumRetryAttempts": 0}, 1)])
def test_a_failed_scheduled_invocation_runs_as_often_as_the_configuration_says(monkeypatch, config, runs):
    # Given a function that fails, and this configuration of its asynchronous invocations
    function = {
        "config": {
            "FunctionName": "sweep",
            "FunctionArn": "arn:aws:lambda:eu-central-1:000000000000:function:sweep",
            "Version": "$LATEST",
        },
        "event_invoke_configs": {"$LATEST": config},
    }
    calls: list[object] = []

    def fail(_: object, event: object) -> dict[str, bool]:
        calls.append(event)
        return {"error": True}

    monkeypatch.setattr(lambda_svc, "_get_func_record_for_ref", lambda _: (function, function["config"], "sweep"))
    monkeypatch.setattr(lambda_svc, "_execute_function", fail)
    monkeypatch.setattr(lambda_svc, "_LAMBDA_ASYNC_RETRY_BASE_SECONDS", 0)

    # When a schedule invokes it
    before = set(threading.enumerate())
    dispatch_to_lambda(function["config"]["FunctionArn"], '{"dryRun": true}')
    for thread in set(threading.enumerate()) - before:
        thread.join()

    # Then
    assert calls == [{"dryRun": True}] * runs
