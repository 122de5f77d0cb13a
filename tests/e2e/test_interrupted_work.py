"""Work that crashed processes left half done is finished by a plan, a job run or the sweep of the deployed stack."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.demo.run import notifications_paused
from lake.commit import CommitDocument, put_bound_document
from lake.engines import Engine
from lake.layout import INBOX, INTENTS, commit_key, lake_key, plan_summary_key
from lake.ledger import CollectionId, ManifestRow, State
from lake.manifest import Lane, ObjectVersion, Partition
from router.ownership.owner import RoutedArrival
from router.ownership.resolve import write_intent
from tests.e2e.scenario import Scenario
from tests.e2e.stack_settings import e2e_settings
from tests.e2e.waiting import wait_for
from tests.unit.lake.world import upload

pytestmark = pytest.mark.long
"""``make permissions`` plays them."""
ON_BOTH = (Engine.GLUE, Engine.EMR_SERVERLESS)
LEASE = timedelta(hours=3)


@pytest.fixture(scope="module")
def ended(scenario: Scenario) -> dict[Engine, str]:
    """An ended job run of each engine, by the id with which it held leases."""
    runs = {}
    for engine in ON_BOTH:
        file = scenario.queued(f"{dataset_of('ended', engine)}/a.ndjson", ['{"n": 1}'])
        night = {"dataset": dataset_of("ended", engine), "engine": engine}
        scenario.execute(scenario.deployment.outputs.overnight, night)
        runs[engine] = str(scenario.wait_state(file, State.DONE).owner)
    return runs


def dataset_of(name: str, engine: str) -> str:
    return f"{name}_{engine.replace('-', '_')}"


def current(scenario: Scenario, manifest: str) -> ManifestRow:
    row = scenario.deployment.ledger.manifests.get(manifest)
    assert row is not None
    return row


def divided(scenario: Scenario, dataset: str) -> ManifestRow:
    """The QUEUED manifest that a plan has created for a new file of the dataset."""
    file = scenario.put(f"{dataset}/a.ndjson", ['{"n": 1}'])
    part, collections = scenario.wait_state(file, State.QUEUED), scenario.deployment.ledger.collections
    wait_for("its collection in the index", lambda: part.collection in [str(row.id) for row in collections.open()])
    scenario.deployment.invoke("plan", {"execution": f"divides-{uuid4().hex}", "dataset": dataset})
    row = wait_for(f"the manifest of {file.key}", lambda: manifest_after_division(scenario, file))
    assert row.state == State.QUEUED
    return row


def manifest_after_division(scenario: Scenario, file: ObjectVersion) -> ManifestRow | None:
    row = scenario.manifest_of(file)
    return row if row is not None and row.state != State.COLLECTED else None


def hold(scenario: Scenario, row: ManifestRow, run: str) -> None:
    """The run has claimed the manifest, and will not renew its lease."""
    claim = scenario.deployment.ledger.manifests.claim(row, run, datetime.now(UTC), LEASE)
    assert claim is not None


def committed(scenario: Scenario, row: ManifestRow, run: str, age: timedelta, *, is_gone: bool = False) -> None:
    """The run ended after the commit point of the manifest, ``age`` ago, before it published it.

    Its upload has other ETags than the commit document, as under a KMS key after a request that was repeated; or it was
    aborted.
    """
    stack, then = scenario.deployment, datetime.now(UTC) - age
    s3, control = stack.s3, stack.resources.control_bucket
    claim = stack.ledger.manifests.claim(row, run, then, LEASE)
    assert claim is not None
    body = io.BytesIO()
    pq.write_table(pa.table({"n": ["1"]}), body)
    pending = upload(s3, stack.resources.lake_bucket, lake_key(row.partition, row.id, 1, 0), body.getvalue())
    if is_gone:
        s3.abort_multipart_upload(Bucket=pending.bucket, Key=pending.key, UploadId=pending.upload_id)
    objects = (replace(pending, etag="0" * 32),)
    started_at = f"{then:%Y-%m-%dT%H:%M:%SZ}"
    document = CommitDocument(row.id, 1, claim.attempt, row.partition, run, started_at, objects, (), (), (), 1)
    reference = put_bound_document(s3, control, commit_key(row.id, 1, claim.attempt, "interrupted"), document)
    stack.ledger.manifests.commit(claim, reference, then)


def sweep(scenario: Scenario) -> dict[str, int]:
    return scenario.deployment.invoke("sweep", {"dryRun": False})


def test_what_ended_runs_hold_is_released_by_the_sweep_and_by_a_plan(
    scenario: Scenario, ended: dict[Engine, str]
) -> None:
    # Given a manifest that a run of each engine held when it ended, with a lease that is still valid
    rows = {engine: divided(scenario, dataset_of("held", engine)) for engine in ON_BOTH}
    for engine, row in rows.items():
        hold(scenario, row, ended[engine])
        scenario.wait_in_index(row, State.RUNNING)
    # When the sweep runs, then they wait again, with a reason
    assert sweep(scenario)["released"] >= len(rows)
    for engine, row in rows.items():
        released = current(scenario, row.id)
        assert (released.state, released.reason) == (
            State.QUEUED,
            f"run {ended[engine]} has ended without finishing it",
        )
        # When it happens again, then a plan does not wait for the sweep
        hold(scenario, released, ended[engine])
        scenario.wait_in_index(row, State.RUNNING)
        name = f"releases-{engine}"
        plans = [
            scenario.deployment.invoke("plan", {"execution": name, "dataset": row.partition.dataset}) for _ in range(2)
        ]
        assert (plans[0]["manifests"], current(scenario, row.id).state) == (1, State.QUEUED)
        # ... and a repetition finds it
        assert plans[1] == plans[0]


@pytest.mark.parametrize(("engine", "other"), [ON_BOTH, ON_BOTH[::-1]])
def test_a_job_run_takes_over_what_an_ended_run_of_the_other_engine_holds(
    scenario: Scenario, ended: dict[Engine, str], engine: Engine, other: Engine, tmp_path: Path
) -> None:
    # Given a night, and a run of the other engine that has claimed the manifest after the plan and ended
    dataset = dataset_of("taken", engine)
    file = scenario.queued(f"{dataset}/a.ndjson", ['{"n": 1}'])
    arn = scenario.start(scenario.deployment.outputs.overnight, {"dataset": dataset, "engine": engine})
    s3, bucket = scenario.deployment.s3, scenario.deployment.resources.control_bucket
    summary = plan_summary_key(arn.rpartition(":")[2])
    wait_for("the plan", lambda: s3.list_objects_v2(Bucket=bucket, Prefix=summary)["KeyCount"])
    row = manifest_after_division(scenario, file)
    assert row is not None
    hold(scenario, row, ended[other])
    # Then the night's first run converts it, in spite of the lease
    execution = scenario.ended(arn)
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    done = scenario.wait_state(file, State.DONE)
    assert done.earlier_owners == (ended[other],)
    assert [cost.id for cost in scenario.costs() if cost.execution == execution["name"]] == [done.owner]
    assert scenario.lake_rows(dataset, tmp_path) == {'{"n": "1"}': 1}


@pytest.mark.parametrize("by", [*ON_BOTH, "sweep"])
@pytest.mark.parametrize("is_gone", [False, True])
def test_a_commit_is_published_although_its_part_was_uploaded_twice_and_fails_if_its_upload_is_gone(
    scenario: Scenario, ended: dict[Engine, str], by: str, is_gone: bool, tmp_path: Path
) -> None:
    # Given a manifest whose run has ended right after the commit point
    row = divided(scenario, dataset_of("gone" if is_gone else "committed", by))
    age = timedelta(minutes=65 if by == "sweep" else 5)
    committed(scenario, row, ended[Engine.GLUE], age, is_gone=is_gone)
    scenario.wait_in_index(row, State.PUBLISHING)
    # When the sweep runs, or a night on this engine
    if by == "sweep":
        assert sweep(scenario)["vanished" if is_gone else "rolledForward"] >= 1
    else:
        scenario.execute(scenario.deployment.outputs.overnight, {"dataset": row.partition.dataset, "engine": by})
    # Then it is published from its commit document: the ETag of a part does not depend on the content alone
    found = current(scenario, row.id)
    if is_gone:
        assert (found.state, "1 upload disappeared before completion" in str(found.reason)) == (State.FAILED, True)
    else:
        assert found.state == State.DONE, found.reason
        assert scenario.lake_rows(row.partition.dataset, tmp_path) == {'{"n": "1"}': 1}


def test_a_manifest_without_its_document_has_failed_on_emr_serverless(scenario: Scenario) -> None:
    row = divided(scenario, "without_document")
    s3, control = scenario.deployment.s3, scenario.deployment.resources.control_bucket
    found = s3.list_objects_v2(Bucket=control, Prefix="manifests/")["Contents"]
    (key,) = [item["Key"] for item in found if row.id in item["Key"]]
    s3.delete_object(Bucket=control, Key=key)
    night = {"dataset": row.partition.dataset, "engine": Engine.EMR_SERVERLESS}
    scenario.execute(scenario.deployment.outputs.overnight, night)
    failed = current(scenario, row.id)
    assert failed.state == State.FAILED
    assert "is gone: restore the object" in str(failed.reason)


def test_a_file_that_is_deleted_before_the_night_is_in_the_quarantine_of_emr_serverless(scenario: Scenario) -> None:
    file = scenario.queued("deleted/a.ndjson", ['{"n": 1}'])
    scenario.deployment.s3.delete_object(Bucket=file.bucket, Key=file.key, VersionId=str(file.version_id))
    night = {"dataset": "deleted", "engine": Engine.EMR_SERVERLESS}
    execution = scenario.execute(scenario.deployment.outputs.overnight, night)
    assert json.loads(execution["output"])["failedFiles"] == 1, execution
    done = scenario.wait_state(file, State.DONE)
    assert done.published is not None
    assert done.published.totals.failed_files == 1


def test_the_sweep_aborts_the_upload_of_an_attempt_that_others_have_replaced(
    scenario: Scenario, ended: dict[Engine, str]
) -> None:
    # Given a published manifest, and an upload that a slow attempt has begun under its prefix
    row = divided(scenario, "slow")
    committed(scenario, row, ended[Engine.GLUE], timedelta(minutes=65))
    scenario.wait_in_index(row, State.PUBLISHING)
    key = lake_key(row.partition, row.id, 1, 7)
    pending = upload(scenario.deployment.s3, scenario.deployment.resources.lake_bucket, key, b"slow")
    # When
    assert sweep(scenario)["aborted"] >= 1
    # Then
    uploads = scenario.deployment.s3.list_multipart_uploads(Bucket=pending.bucket).get("Uploads", [])
    assert pending.upload_id not in {item["UploadId"] for item in uploads}
    assert current(scenario, row.id).state == State.DONE


def test_the_sweep_finishes_what_route_and_plan_have_begun_and_starts_the_stream(scenario: Scenario) -> None:
    # Given files of both lanes whose route crashed after its intent, ten minutes ago
    stack, now = scenario.deployment, datetime.now(UTC)
    with notifications_paused(stack):
        files = [scenario.put(f"resumed/{name}.ndjson", ['{"n": 1}']) for name in ("a", "urgent/b")]
    arrived = [replace(file, arrived_at=f"{now:%Y-%m-%dT%H:%M:%SZ}") for file in files]
    lanes = zip(arrived, (Lane.BATCH, Lane.STREAM), strict=True)
    partition = Partition.of("resumed", now)
    routed = [RoutedArrival(file, partition, lane, "crashed", urgent=lane == Lane.STREAM) for file, lane in lanes]
    key = write_intent(scenario.services(e2e_settings(), lambda: now), routed, now - timedelta(minutes=10))
    # When the sweep runs, then they have an owner, and the intent is deleted
    assert sweep(scenario)["resumed"] == len(files)
    control = stack.resources.control_bucket
    intents = stack.s3.list_objects_v2(Bucket=control, Prefix=INTENTS).get("Contents", [])
    assert key not in [item["Key"] for item in intents]
    # Given a pointer that a lost checkpoint has read, and a collection that a crashed plan has closed
    waiting = scenario.wait_state(arrived[1], State.QUEUED)
    for item in stack.s3.list_objects_v2(Bucket=control, Prefix=INBOX.rstrip("/")).get("Contents", []):
        stack.s3.delete_object(Bucket=control, Key=item["Key"])
    scenario.make_older(waiting, timedelta(minutes=20))
    part = scenario.manifest_of(arrived[0])
    assert part is not None
    collections, collection = stack.ledger.collections, CollectionId.parse(str(part.collection))
    collections.close(collection, datetime.now(UTC), final=False)
    wait_for("it in the index", lambda: [row for row in collections.open() if row.id == collection and row.closed_at])
    scenario.wait_in_index(waiting, State.QUEUED)
    # When the next sweep or plan runs
    done = sweep(scenario)
    # Then the stream has been started and converts the first file, and the second file waits for the night
    assert (done["repointed"], done["divided"] >= 1) == (1, True)
    assert scenario.wait_state(arrived[1], State.DONE).lane == Lane.STREAM
    row = manifest_after_division(scenario, arrived[0])
    assert row is not None
    assert row.state == State.QUEUED
