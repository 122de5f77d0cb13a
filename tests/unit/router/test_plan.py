"""plan: backlog to runs; merging moves files, and every file stays in exactly one manifest."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.errors import InvalidInputError
from lake.ledger import CommitReference, ManifestRow, State
from lake.manifest import Lane, read_manifest, write_manifest
from lake.partition import Partition
from lake.settings import parse_settings
from lake.time import next_local_time
from router.plan.forecast import forecast
from router.plan.handler import plan
from router.plan.merge import MAX_SOURCES, mergeable_groups
from router.plan.pack import PlannedRun, pack_runs
from tests.unit.lake.faults import Crash
from tests.unit.lake.world import LEASE, PARTITION
from tests.unit.router.conftest import Deployment, new_deployment

HOURS = [Partition(dataset, "2026-11-20", hour) for dataset in ("clicks", "orders") for hour in (8, 9)]
rows = st.lists(
    st.builds(
        lambda number, size, files, hour, attempt: ManifestRow(
            f"m{number}", State.QUEUED, Lane.BATCH, hour, f"2026-11-20T{number:04d}", size, files, attempt=attempt
        ),
        st.integers(0, 9999),
        st.integers(0, 120),
        st.integers(1, 12),
        st.sampled_from(HOURS),
        st.sampled_from([0, 0, 0, 1]),
    ),
    unique_by=lambda row: row.id,
    max_size=60,
)
LIMITS = parse_settings(
    {
        "stage": "t",
        "batch": {"manifest_bytes": 100, "manifest_files": 20, "run_bytes": 300, "run_manifests": 4},
        "stream": {"manifest_bytes": 10, "manifest_files": 10},
    }
).batch


@given(rows)
def test_every_manifest_is_in_exactly_one_run(backlog: list[ManifestRow]) -> None:
    runs = pack_runs(backlog, LIMITS)
    assert Counter(row.id for run in runs for row in run.manifests) == Counter(row.id for row in backlog)
    for run in runs:
        assert run.manifests
        assert len(run.manifests) == 1 or (run.bytes <= 300 and len(run.manifests) <= 4)


@given(rows)
def test_groups_are_of_one_hour_within_limits_and_untried(backlog: list[ManifestRow]) -> None:
    found = mergeable_groups(backlog, LIMITS)
    members = [row for group in found for row in group]
    assert len({row.id for row in members}) == len(members)
    for group in found:
        assert 2 <= len(group) <= MAX_SOURCES
        assert len({row.partition for row in group}) == 1
        assert sum(row.bytes for row in group) <= 100
        assert sum(row.files for row in group) <= 20
        assert {row.attempt for row in group} == {0}


def test_a_group_fits_into_a_transaction() -> None:
    many = [
        ManifestRow(f"m{number}", State.QUEUED, Lane.BATCH, PARTITION, f"{number:04d}", 0, 0) for number in range(200)
    ]
    assert [len(group) for group in mergeable_groups(many, LIMITS)] == [90, 90, 20]


def night(deployment: Deployment, **fields: Any) -> dict[str, Any]:
    return plan({"execution": "night", **fields}, deployment.services)


def document(deployment: Deployment, uri: str) -> Any:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return json.loads(deployment.raw_s3.get_object(Bucket=bucket, Key=key)["Body"].read())


def planned(deployment: Deployment, answer: dict[str, Any]) -> list[str]:
    """Ids of the manifests of all runs, read as the Map and its jobs read them."""
    index = document(deployment, "s3://{bucket}/{key}".format(**answer["index"]))
    return [manifest for item in index for manifest in document(deployment, item["run"])["manifests"]]


def files(deployment: Deployment, manifests: list[str]) -> Counter[str]:
    return Counter(
        file.key
        for manifest in manifests
        for file in read_manifest(deployment.raw_s3, "control", manifest, ("input",)).files
    )


def test_small_manifests_of_an_hour_are_merged_and_packed(deployment: Deployment) -> None:
    # Given: two of one hour, one of another
    names = ("a.json", "b.json")
    sources = [deployment.queued(name) for name in names]
    other = deployment.queued("c.json", partition=HOURS[0])
    # When
    answer = night(deployment)
    # Then
    manifests = planned(deployment, answer)
    assert len(manifests) == 2
    assert other.id in manifests
    assert files(deployment, manifests) == Counter(["orders/a.json", "orders/b.json", "clicks/c.json"])
    assert [deployment.row(row.id).state for row in sources] == ["SUPERSEDED", "SUPERSEDED"]
    counts = {name: answer[name] for name in ("runs", "manifests", "files", "bytes")}
    assert counts == {"runs": 1, "manifests": 2, "files": 3, "bytes": 300}
    summary = document(deployment, answer["summary"])
    assert sorted(summary["manifestIds"]) == sorted(manifests)
    night_row = deployment.ledger.executions.get("night")
    assert night_row is not None
    assert night_row["plan"]["runs"] == 1


def test_a_dry_run_writes_the_summary_only(deployment: Deployment) -> None:
    deployment.queued("a.json")
    deployment.queued("b.json")
    deployment.claimed(deployment.queued("c.json"))
    deployment.wait(LEASE)
    deployment.faults.writes.clear()
    answer = night(deployment, dryRun=True)
    assert answer["manifests"] == 2
    assert deployment.faults.writes == ["put_object"]
    assert deployment.keys("control", "plans/") == ["plans/night/plan.json"]


def test_an_empty_backlog_is_an_empty_index(deployment: Deployment) -> None:
    answer = night(deployment)
    assert (answer["runs"], planned(deployment, answer)) == (0, [])


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, ["clicks/8", "clicks/9", "orders/8", "orders/9"]),
        ({"dataset": "orders"}, ["orders/8", "orders/9"]),
        ({"from": "2026-11-20T09"}, ["clicks/9", "orders/9"]),
        ({"to": "2026-11-20T08"}, ["clicks/8", "orders/8"]),
        ({"dataset": "orders", "from": "2026-11-20", "to": "2026-11-20"}, ["orders/8", "orders/9"]),
        ({"from": "2026-11-21", "to": "2026-11-30"}, []),
        ({"dataset": None, "from": None}, ["clicks/8", "clicks/9", "orders/8", "orders/9"]),
    ],
)
def test_a_plan_can_be_of_a_part(deployment: Deployment, fields: dict[str, Any], found: list[str]) -> None:
    for hour in HOURS:
        deployment.ledger.datasets.register(hour.dataset)
        deployment.queued(str(hour.hour), partition=hour)
    answer = night(deployment, **fields)
    assert sorted(files(deployment, planned(deployment, answer))) == found


def test_what_dead_runs_hold_is_released_and_what_live_ones_hold_is_not(deployment: Deployment) -> None:
    # Given: a run that ended, one that lives, one whose lease is over, one nobody knows
    deployment.glue.runs["batch-job"] = {"jr_dead": "FAILED", "jr_live": "RUNNING"}
    held = {owner: deployment.queued(f"{owner}.json") for owner in ("jr_old", "jr_dead", "jr_live", "elsewhere")}
    deployment.claimed(held.pop("jr_old"), "jr_old")
    deployment.wait(LEASE)
    for owner, row in held.items():
        deployment.claimed(row, owner)
    # When
    manifests = planned(deployment, night(deployment))
    # Then
    assert files(deployment, manifests) == Counter(["orders/jr_old.json", "orders/jr_dead.json"])
    assert deployment.row(held["jr_dead"].id).reason == "run jr_dead has ended without finishing it"


def test_only_a_publish_that_takes_too_long_is_planned(deployment: Deployment) -> None:
    row = deployment.queued("a.json")
    deployment.ledger.manifests.commit(deployment.claimed(row), CommitReference("commits/x", "0"), deployment.now)
    assert planned(deployment, night(deployment)) == []
    deployment.wait(timedelta(minutes=5))
    assert planned(deployment, night(deployment)) == [row.id]


def test_a_manifest_without_a_document_is_left_to_the_job(deployment: Deployment) -> None:
    rows = [deployment.queued("a.json"), deployment.queued("b.json")]
    deployment.raw_s3.delete_object(Bucket="control", Key=f"manifests/{rows[0].id[:8]}/{rows[0].id}.json")
    assert sorted(planned(deployment, night(deployment))) == sorted(row.id for row in rows)


def test_a_source_that_has_moved_on_stops_its_merge_only(deployment: Deployment) -> None:
    # Given: a run claims one of the sources right before the transaction
    rows = [deployment.queued("a.json"), deployment.queued("b.json")]
    deployment.faults.writes.clear()
    deployment.faults.pause = (2, lambda: deployment.claimed(deployment.row(rows[0].id)) and None)
    assert planned(deployment, night(deployment)) == [rows[1].id]
    assert deployment.row(rows[1].id).state == State.QUEUED


def test_sources_that_another_plan_has_merged_are_followed_to_their_successor(deployment: Deployment) -> None:
    # Given: an index that is behind the ledger
    rows = [deployment.queued("a.json"), deployment.queued("b.json")]
    successor = deployment.manifest("a.json", "b.json")
    write_manifest(deployment.raw_s3, "control", successor)
    manifests = deployment.ledger.manifests
    deployment.faults.writes.clear()
    deployment.faults.pause = (2, lambda: manifests.supersede(rows, [successor], "merged", deployment.now) and None)
    # When, Then
    assert planned(deployment, night(deployment)) == [successor.id]


@pytest.mark.parametrize("number", range(1, 9))
def test_a_plan_that_dies_and_is_repeated_plans_every_file_once(number: int) -> None:
    with new_deployment() as deployment:
        # Given: two merges of two
        for hour in (8, 9):
            for name in ("a", "b"):
                deployment.queued(f"{hour}{name}", partition=Partition("orders", "2026-11-20", hour))
        deployment.faults.reset()
        deployment.faults.crash_before = number
        with pytest.raises(Crash):
            night(deployment)
        # When
        deployment.faults.reset()
        manifests = planned(deployment, night(deployment))
        # Then
        assert files(deployment, manifests) == Counter(["orders/8a", "orders/8b", "orders/9a", "orders/9b"])
        assert {deployment.row(manifest).state for manifest in manifests} == {"QUEUED"}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"datset": "orders"}, "overnight does not know the input field 'datset': pass only dataset, from, to, dryRun"),
        ({"from": "yesterday"}, "from = 'yesterday' is not a valid time: pass a UTC day such as 2026-11-21"),
        ({"to": "2026-02-30"}, "to = '2026-02-30' is not a valid time"),
        ({"to": "2026-02-20T24"}, "to = '2026-02-20T24' is not a valid time"),
        ({"from": 20261120}, "from = 20261120 is not a valid time"),
        ({"from": "2026-11-21", "to": "2026-11-20"}, "from = '2026-11-21' is later than to = '2026-11-20': pass the"),
        ({"dataset": "order"}, "dataset = 'order' is unknown: pass one of orders"),
        ({"dataset": 7}, "dataset = 7 is unknown"),
        ({"dryRun": "yes"}, "dryRun = 'yes' is neither true nor false: pass dryRun: true, without quotes"),
        ({"execution": ""}, "execution is missing"),
    ],
)
def test_an_invalid_input_says_what_to_pass(deployment: Deployment, fields: dict[str, Any], sentence: str) -> None:
    deployment.ledger.datasets.register("orders")
    with pytest.raises(InvalidInputError) as caught:
        night(deployment, **fields)
    assert str(caught.value).startswith(sentence)


FRIDAY_NIGHT = datetime(2026, 11, 20, 21, tzinfo=UTC)
GIB = 1 << 30


def test_a_forecast_says_how_long_how_much_and_whether_it_fits() -> None:
    # Given: 9 workers of 4 vCPUs that convert 10 MB/s each: 360 MB/s; two runs one after the other
    settings = parse_settings(
        {"stage": "t", "time_zone": "Europe/Berlin", "batch": {"max_runs": 1}, "price": {"dpu_hour_flex": 0.29}}
    )
    size = 360_000_000 * 3600
    run = PlannedRun((ManifestRow("m", State.QUEUED, Lane.BATCH, PARTITION, "", size, 1),))
    # When
    expected = forecast([run, run], settings, {"orders": 10_000_000.0}, FRIDAY_NIGHT)
    # Then: two hours and two starts; 2 h * 10 DPU * $0.29; the deadline is 06:00 in Berlin
    assert (expected.minutes, expected.dollars) == (122.0, 5.8)
    assert (expected.deadline, expected.fits) == ("2026-11-21T05:00+00:00", True)
    assert not forecast([run] * 8, settings, {"orders": 10_000_000.0}, FRIDAY_NIGHT).fits
    assert forecast([run], settings, {}, FRIDAY_NIGHT).minutes == 16.0


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-11-20T21:00", "2026-11-21T05:00"),
        ("2026-11-21T04:59", "2026-11-21T05:00"),
        ("2026-11-21T05:00", "2026-11-22T05:00"),
        ("2026-03-28T22:00", "2026-03-29T04:00"),
        ("2026-10-24T22:00", "2026-10-25T05:00"),
    ],
    ids=["tonight", "in a minute", "just over", "spring", "autumn"],
)
def test_the_deadline_is_the_next_one_by_the_local_clock(now: str, expected: str) -> None:
    instant = datetime.fromisoformat(now).replace(tzinfo=UTC)
    assert next_local_time("06:00", "Europe/Berlin", instant) == datetime.fromisoformat(expected).replace(tzinfo=UTC)
