"""Crashes, lost answers, zombies and doubles: the published rows are the same."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ReadTimeoutError

from lake.errors import HybridRouterError
from lake.ledger import State
from tests.integration.conversion_world import Deployment
from tests.integration.faults import Crash, Steps
from transform.convert import convert

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from local.cloud import LocalCloud

BODY = b'{"a":1}\nbroken\n{"a":2}\n'
ROWS = [{"a": "1"}, {"a": "2"}]


def enqueue(deployment: Deployment) -> str:
    return deployment.enqueue([deployment.put("orders/a.json", BODY)])


def convert_with(deployment: Deployment, steps: Steps, spark: SparkSession, manifest: str, run: str = "run-1") -> Any:
    context = deployment.context(spark, run)
    return convert([manifest], replace(context, services=steps.wrap(deployment.services)))


def check_published_once(deployment: Deployment, manifest: str) -> None:
    assert deployment.row(manifest).state == State.DONE
    assert deployment.lake() == ROWS
    assert [record["line"] for record in deployment.quarantine()] == ["broken"]
    assert deployment.unfinished_uploads() == []
    assert deployment.result(manifest)["rows"] == 2


def steps_of_a_quiet_conversion(deployment: Deployment, spark: SparkSession) -> list[str]:
    steps = Steps(lambda _number, _name, call: call())
    convert_with(deployment, steps, spark, enqueue(deployment))
    return steps.names


def test_a_crash_before_any_step_changes_nothing(cloud: LocalCloud, spark: SparkSession) -> None:
    names = steps_of_a_quiet_conversion(Deployment.create(cloud), spark)
    assert {"update_item", "put_object", "complete_multipart_upload", "head_object"} <= set(names)
    for crash_at in range(len(names)):
        # Given a run that dies before this step
        deployment = Deployment.create(cloud)
        manifest = enqueue(deployment)

        def fault(number: int, _name: str, call: Callable[[], Any], crash_at: int = crash_at) -> Any:
            if number >= crash_at:
                raise Crash
            return call()

        died = False
        try:
            convert_with(deployment, Steps(fault), spark, manifest)
        except Crash:
            died = True
        assert died

        # When another run comes
        deployment.dead_runs.add("run-1")
        (outcome,) = deployment.convert([manifest], spark, "run-2")

        # Then
        assert outcome.state == "DONE", names[crash_at]
        check_published_once(deployment, manifest)


def test_a_lost_answer_of_any_step_changes_nothing(cloud: LocalCloud, spark: SparkSession) -> None:
    names = steps_of_a_quiet_conversion(Deployment.create(cloud), spark)
    for lost in range(len(names)):
        # Given a step whose answer is lost after it was carried out
        deployment = Deployment.create(cloud)
        manifest = enqueue(deployment)

        def fault(number: int, _name: str, call: Callable[[], Any], lost: int = lost) -> Any:
            answer = call()
            if number == lost:
                raise ReadTimeoutError(endpoint_url="the emulator")
            return answer

        try:
            convert_with(deployment, Steps(fault), spark, manifest)
        except (ReadTimeoutError, HybridRouterError):
            deployment.dead_runs.add("run-1")

        # When another run comes
        (outcome,) = deployment.convert([manifest], spark, "run-2")

        # Then
        assert outcome.state == "DONE", names[lost]
        check_published_once(deployment, manifest)


def test_a_committed_manifest_is_rolled_forward_and_not_converted_again(
    deployment: Deployment, spark: SparkSession
) -> None:
    # Given a run that dies right after its commit
    manifest = enqueue(deployment)

    def fault(_number: int, name: str, call: Callable[[], Any]) -> Any:
        if name == "complete_multipart_upload":
            raise Crash
        return call()

    with pytest.raises(Crash):
        convert_with(deployment, Steps(fault), spark, manifest)
    assert deployment.row(manifest).state == State.PUBLISHING

    # When another run comes, although the first one's lease is alive
    (outcome,) = deployment.convert([manifest], spark, "run-2")

    # Then
    assert outcome.state == "DONE"
    assert deployment.row(manifest).attempt == 1
    check_published_once(deployment, manifest)


def test_the_same_manifest_by_two_runs_at_once(deployment: Deployment, spark: SparkSession) -> None:
    # Given
    manifest = enqueue(deployment)
    together = threading.Barrier(2)

    def work(run: str) -> str:
        together.wait()
        return deployment.convert([manifest], spark, run)[0].state

    # When
    with ThreadPoolExecutor(2) as pool:
        states = list(pool.map(work, ["run-1", "run-2"]))

    # Then
    assert "DONE" in states
    assert set(states) <= {"DONE", "HELD"}
    check_published_once(deployment, manifest)


def test_a_live_lease_is_held_and_a_dead_run_is_taken_over_at_once(deployment: Deployment, spark: SparkSession) -> None:
    # Given a manifest that another run works on
    manifest = enqueue(deployment)
    lease = deployment.clock.now.replace(hour=13) - deployment.clock.now
    assert deployment.services.ledger.manifests.claim(deployment.row(manifest), "run-1", deployment.clock(), lease)

    # When / Then it is held, even from a second call of the same run
    assert deployment.convert([manifest], spark, "run-2")[0].state == "HELD"
    assert deployment.convert([manifest], spark, "run-1")[0].state == "HELD"
    deployment.dead_runs.add("run-1")
    assert deployment.convert([manifest], spark, "run-2")[0].state == "DONE"
    check_published_once(deployment, manifest)
    row = deployment.row(manifest)
    assert (row.attempt, row.owner, row.earlier_owners) == (2, "run-2", ("run-1",))


def zombie(deployment: Deployment, spark: SparkSession, wakes_before: Callable[[str], bool]) -> str:
    """A run sleeps before a step for longer than its lease, and another one does the work meanwhile."""
    manifest = enqueue(deployment)
    slept = []

    def fault(_number: int, name: str, call: Callable[[], Any]) -> Any:
        if not slept and deployment.row(manifest).attempt and wakes_before(name):
            slept.append(name)
            deployment.clock.advance(hours=1)
            assert deployment.convert([manifest], spark, "run-2")[0].state == "DONE"
        return call()

    (outcome,) = convert_with(deployment, Steps(fault), spark, manifest)
    assert slept
    assert outcome.state == "DONE"
    return manifest


def test_a_zombie_that_wakes_before_it_writes_its_commit_document(deployment: Deployment, spark: SparkSession) -> None:
    manifest = zombie(deployment, spark, lambda name: name == "put_object")
    check_published_once(deployment, manifest)
    assert deployment.row(manifest).attempt == 2


def test_a_zombie_that_wakes_before_its_commit(deployment: Deployment, spark: SparkSession) -> None:
    seen: list[str] = []

    def wakes(name: str) -> bool:
        seen.append(name)
        return name == "update_item" and "put_object" in seen

    manifest = zombie(deployment, spark, wakes)
    check_published_once(deployment, manifest)
    assert deployment.row(manifest).attempt == 2


def test_uploads_that_vanished_end_failed_and_leave_nothing(deployment: Deployment, spark: SparkSession) -> None:
    # Given uploads that are aborted between commit and publish
    manifest = enqueue(deployment)
    s3 = deployment.services.s3

    def fault(_number: int, name: str, call: Callable[[], Any]) -> Any:
        if name == "complete_multipart_upload":
            lake = deployment.services.resources.lake_bucket
            for upload in s3.list_multipart_uploads(Bucket=lake).get("Uploads", []):
                s3.abort_multipart_upload(Bucket=lake, Key=upload["Key"], UploadId=upload["UploadId"])
        return call()

    # When
    (outcome,) = convert_with(deployment, Steps(fault), spark, manifest)

    # Then
    assert outcome.state == "FAILED"
    assert "uploads are gone" in str(outcome.reason)
    assert deployment.lake() == []
    assert deployment.quarantine() == []
    assert deployment.unfinished_uploads() == []

    # And forced it is converted again
    assert deployment.services.ledger.manifests.force(deployment.row(manifest), deployment.clock())
    (outcome,) = deployment.convert([manifest], spark)
    assert (outcome.state, outcome.rows) == ("DONE", 2)
    assert deployment.lake() == ROWS


def test_a_forced_manifest_gets_a_generation_of_its_own(deployment: Deployment, spark: SparkSession) -> None:
    # Given
    manifest = enqueue(deployment)
    deployment.convert([manifest], spark)
    assert deployment.services.ledger.manifests.force(deployment.row(manifest), deployment.clock())

    # When
    deployment.convert([manifest], spark)

    # Then both generations stand until the sweep, and the ledger names the new one
    keys = deployment.keys(deployment.services.resources.lake_bucket)
    assert [
        key.startswith(deployment.prefix(manifest, generation)) for key, generation in zip(keys, (1, 2), strict=True)
    ]
    published = deployment.row(manifest).published
    assert published is not None
    assert published.generation == 2


def test_a_poisonous_file_is_isolated_and_the_others_go_through(deployment: Deployment, spark: SparkSession) -> None:
    # Given a file whose task always dies: its rejects have nowhere to go
    settings = deployment.services.settings
    settings = replace(settings, batch=replace(settings.batch, max_attempts=1))
    resources = replace(deployment.services.resources, quarantine_bucket="no-such-bucket")
    deployment.services = replace(deployment.services, settings=settings, resources=resources)
    bodies = [b'{"a":1}\n', b"poison\n", b'{"a":2}\n']
    files = [deployment.put(f"orders/{number}.json", body) for number, body in enumerate(bodies)]
    manifest = deployment.enqueue(files)
    innocent = deployment.enqueue([deployment.put("orders/i.json", b'{"a":3}\n')])

    # When
    outcomes = deployment.convert([manifest, innocent], spark)

    # Then
    assert [outcome.state for outcome in outcomes[:2]] == ["SUPERSEDED", "DONE"]
    (failed,) = [outcome for outcome in outcomes if outcome.state == "FAILED"]
    assert deployment.row(failed.manifest).files == 1
    assert "NoSuchBucket" in str(failed.reason)
    assert sorted(row["a"] for row in deployment.lake()) == ["1", "2", "3"]


def test_what_was_published_is_never_superseded(deployment: Deployment, spark: SparkSession) -> None:
    # Given a published manifest whose reprocess always dies
    manifest = deployment.enqueue([deployment.put(f"orders/{name}.json", BODY) for name in "ab"])
    deployment.convert([manifest], spark)
    before = deployment.lake()
    assert deployment.services.ledger.manifests.force(deployment.row(manifest), deployment.clock())
    settings = deployment.services.settings
    settings = replace(settings, batch=replace(settings.batch, max_attempts=1))
    resources = replace(deployment.services.resources, quarantine_bucket="no-such-bucket")
    deployment.services = replace(deployment.services, settings=settings, resources=resources)

    # When
    (outcome,) = deployment.convert([manifest], spark)

    # Then
    assert outcome.state == "FAILED"
    assert deployment.lake() == before
    published = deployment.row(manifest).published
    assert published is not None
    assert published.generation == 1
