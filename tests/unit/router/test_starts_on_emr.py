"""Starts of a streaming run on EMR Serverless: by several callers, again, and when the service takes none now."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from lake.engines.emr_serverless import START_SETTLES
from lake.errors import InvalidInputError, TransientError
from router.route.handler import route
from router.stream.runs import ensure_running, stream_runs
from tests.unit.router.emr import LAUNCH, FakeEmr, emr_error
from tests.unit.router.events import batch, failures, message, s3_record
from tests.unit.router.stream_actions import act

if TYPE_CHECKING:
    from tests.unit.router.conftest import Deployment


def start(deployment: Deployment) -> str | None:
    """Start a run of the first shard, as each caller does."""
    stream = deployment.ledger.stream
    return stream_runs(deployment.services, "1").start(lambda settles: stream.begin_start(deployment.now, settles))


def test_callers_at_the_same_time_start_one_run(deployment: Deployment, emr: FakeEmr) -> None:
    # Given a run that has just been started, and a list that does not have it yet
    assert start(deployment)
    emr.unlisted.update(emr.runs)
    deployment.wait(START_SETTLES - timedelta(seconds=1))
    # When another caller starts one, then its request is that of the first one
    start(deployment)
    assert len(emr.runs) == 1
    assert emr.requests[0] == emr.requests[1]


def test_callers_that_make_a_token_at_the_same_time_get_the_same_one(deployment: Deployment, emr: FakeEmr) -> None:
    # Given a caller that takes its turn between the read and the write of another one
    stream, tokens = deployment.ledger.stream, list[str]()
    update = stream._table.update

    def update_late(*arguments: Any, **fields: Any) -> None:
        stream._table.update = update  # type: ignore[method-assign]
        tokens.append(stream.begin_start(deployment.now, START_SETTLES))
        update(*arguments, **fields)

    stream._table.update = update_late  # type: ignore[method-assign]
    # When
    tokens.append(stream.begin_start(deployment.now, START_SETTLES))
    # Then
    assert len(tokens) == 2
    assert len(set(tokens)) == 1


def test_a_run_that_has_failed_before_it_began_is_replaced_after_a_minute(deployment: Deployment, emr: FakeEmr) -> None:
    act(deployment, "start")
    emr.end("FAILED")
    # When it is watched at once, then the start is still that one
    act(deployment, "watch")
    assert emr.states() == ["FAILED"]
    # When the minute is over
    deployment.wait(START_SETTLES)
    act(deployment, "watch")
    assert emr.states() == ["FAILED", "SUBMITTED"]


def test_a_start_by_a_function_of_the_deployment_before_counts(deployment: Deployment, emr: FakeEmr) -> None:
    # Given a run that another version has started with other parameters, and that the list does not have yet
    act(deployment, "start")
    emr.unlisted.update(emr.runs)
    newer = replace(LAUNCH, entry_point="s3://code/newer.py")
    deployment.services = replace(deployment.services, stream_launch=newer)
    # When, then it is tried again
    with pytest.raises(TransientError, match="cannot start the streaming job stream-job now"):
        start(deployment)
    # When the list has it, then no other one is needed
    emr.unlisted.clear()
    assert not ensure_running(deployment.services, "1")


def test_a_window_begins_while_the_application_is_stopping(
    deployment: Deployment, emr: FakeEmr, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given an application that takes no run for the moment
    def refuse(**_: Any) -> None:
        raise emr_error("ValidationException")

    with monkeypatch.context() as patch:
        patch.setattr(emr, "start_job_run", refuse)
        # When a window begins, then it is open without a run, and its watch is told why
        assert act(deployment, "start") == {"running": False, "windowOver": False, "stopped": True}
        with pytest.raises(TransientError, match="cannot start the streaming job stream-job now"):
            act(deployment, "watch")
        # And an urgent file is redelivered
        events = batch(message("a", s3_record("clicks/urgent/a.ndjson")))
        assert failures(route(events, deployment.services)) == ["a"]
    # When it takes runs again
    assert act(deployment, "watch")["running"]
    assert emr.states() == ["SUBMITTED"]


def test_an_error_that_does_not_pass_is_raised(
    deployment: Deployment, emr: FakeEmr, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> None:
        raise emr_error("AccessDeniedException")

    monkeypatch.setattr(emr, "start_job_run", refuse)
    with pytest.raises(ClientError, match="AccessDeniedException"):
        ensure_running(deployment.services, "1")


def test_a_function_that_was_not_told_how_to_start_a_run_says_so(deployment: Deployment, emr: FakeEmr) -> None:
    deployment.services = replace(deployment.services, stream_launch=None)
    with pytest.raises(InvalidInputError, match="deploy the stack again, it sets STREAM_LAUNCH"):
        ensure_running(deployment.services, "1")
