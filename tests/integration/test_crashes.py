"""A run that dies, or loses an answer, at any of its requests: the next run publishes the same rows, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ReadTimeoutError

from lake.errors import HybridRouterError
from lake.ledger import State
from tests.integration.conversion_world import ConversionWorld
from tests.integration.faults import Crash, Steps
from tests.integration.one_manifest import check_published_once, convert_with, enqueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from local.cloud import LocalCloud


def steps_of_an_undisturbed_conversion(world: ConversionWorld, spark: SparkSession) -> list[str]:
    steps = Steps(lambda _number, _name, call: call())
    convert_with(world, steps, spark, enqueue(world))
    return steps.names


@pytest.mark.repeats_lines
def test_a_crash_before_any_step_changes_nothing(cloud: LocalCloud, spark: SparkSession) -> None:
    names = steps_of_an_undisturbed_conversion(ConversionWorld.create(cloud), spark)
    assert {"update_item", "put_object", "complete_multipart_upload", "head_object"} <= set(names)
    for crash_at in range(len(names)):
        # Given a run that dies before this step
        world = ConversionWorld.create(cloud)
        manifest = enqueue(world)

        def fault(number: int, _name: str, call: Callable[[], Any], crash_at: int = crash_at) -> Any:
            if number >= crash_at:
                raise Crash
            return call()

        with pytest.raises(Crash):
            convert_with(world, Steps(fault), spark, manifest)

        # When another run converts it
        world.dead_runs.add("run-1")
        (outcome,) = world.convert([manifest], spark, "run-2")

        # Then
        assert outcome.state == "DONE", names[crash_at]
        check_published_once(world, manifest)


@pytest.mark.repeats_lines
def test_a_lost_answer_of_any_step_changes_nothing(cloud: LocalCloud, spark: SparkSession) -> None:
    names = steps_of_an_undisturbed_conversion(ConversionWorld.create(cloud), spark)
    for lost in range(len(names)):
        # Given a step whose answer is lost after it was carried out
        world = ConversionWorld.create(cloud)
        manifest = enqueue(world)

        def fault(number: int, _name: str, call: Callable[[], Any], lost: int = lost) -> Any:
            answer = call()
            if number == lost:
                raise ReadTimeoutError(endpoint_url="the emulator")
            return answer

        try:
            done = all(outcome.terminal for outcome in convert_with(world, Steps(fault), spark, manifest))
        except (ReadTimeoutError, HybridRouterError):
            done = False
        if not done:  # The job ends with exit code 1.
            world.dead_runs.add("run-1")

        # When another run converts it
        (outcome,) = world.convert([manifest], spark, "run-2")

        # Then
        assert outcome.state == "DONE", names[lost]
        check_published_once(world, manifest)


def test_a_committed_manifest_is_rolled_forward_and_not_converted_again(
    world: ConversionWorld, spark: SparkSession
) -> None:
    # Given a run that dies right after its commit
    manifest = enqueue(world)

    def fault(_number: int, name: str, call: Callable[[], Any]) -> Any:
        if name == "complete_multipart_upload":
            raise Crash
        return call()

    with pytest.raises(Crash):
        convert_with(world, Steps(fault), spark, manifest)
    assert world.row(manifest).state == State.PUBLISHING

    # When another run gets it, although the first one's lease is live
    (outcome,) = world.convert([manifest], spark, "run-2")

    # Then
    assert outcome.state == "DONE"
    assert world.row(manifest).attempt == 1
    check_published_once(world, manifest)
