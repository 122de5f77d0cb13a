"""Missed events: the object gets an owner, whatever the dataset, the pause between two sweeps or the version."""

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.dataset_rules import skip_old_days
from lake.settings.operation import SweepSettings
from lake.time import iso_utc
from router.estimate.other_costs import Units
from router.route.handler import route_arrivals
from router.sweep.handler import sweep
from router.sweep.missed import (
    HOUR_FORMAT,
    LISTING,
    OLD_DAYS,
    InputSearch,
    _read_search,
    adopt_missed,
    begin_round,
    end_round,
    find_datasets,
)
from router.sweep.repair import Repair
from tests.unit.lake.world import file_of
from tests.unit.router.conftest import Deployment
from tests.unit.router.sweep.sweeping import HOUR, list_pages, repair

NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)


def owned_keys(deployment: Deployment) -> list[str]:
    return [file.key for file in deployment.waiting_files()]


@pytest.mark.parametrize("prefix", ["", "landing/"])
def test_a_dataset_that_the_ledger_has_never_seen_is_found_by_its_folder(deployment: Deployment, prefix: str) -> None:
    # Given files of new datasets, one deleted since, a folder without a valid dataset name, and a file in no folder
    deployment.keep_versions()
    deployment.configure(datasets=[{"name": "{folder}", "prefix": prefix}])
    expected = [f"{prefix}{name}/a.json" for name in ("clicks", "orders")]
    modified = deployment.put(*expected, f"{prefix}東京/a.json", f"{prefix}a.json", "elsewhere.json")
    deployment.raw_s3.delete_object(Bucket="input", Key=expected[0])
    deployment.now = modified + timedelta(hours=7)
    # When, Then
    assert sweep(deployment.services)["adopted"] == 2
    assert owned_keys(deployment) == expected


def test_a_folder_whose_keys_give_no_further_dataset_takes_no_room(deployment: Deployment) -> None:
    # Given room for one more dataset, its folder, and the folders of a named rule, of Firehose and of a canary
    rules = [{"name": "orders", "prefix": "landing-orders/"}, {"name": "{folder}"}]
    deployment.configure(datasets=rules, max_datasets=3)
    others = ["firehose-failed-records/clicks/a.json", "_canary/a.json"]
    modified = deployment.put(*others, "landing-orders/a.json", "visits/a.json")
    deployment.now = modified + timedelta(hours=7)
    # Then it is found, and nothing is listed twice under two names
    assert find_datasets(repair(deployment)) == (["clicks", "orders", "visits"], True)
    assert sweep(deployment.services)["adopted"] == 2
    assert owned_keys(deployment) == ["landing-orders/a.json", "visits/a.json"]


def test_a_slow_page_of_folders_is_not_listed_in_vain(deployment: Deployment) -> None:
    # Given a folder of a new dataset, and a listing whose one page takes the time that is left for folders
    deployment.put("visits/a.json")
    work = repair(deployment)
    deployment.raw_s3.meta.events.register("after-call.s3.ListObjectVersions", lambda **_: deployment.wait(HOUR))
    # When, Then
    assert find_datasets(work) == (["clicks", "orders", "visits"], True)


def test_datasets_that_rules_have_named_take_no_room_after_them(
    deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    # Given named rules, one of which has received a file, and a file without a rule; two datasets were admitted
    deployment.configure(datasets=[{"name": f"d{n}", "prefix": f"d{n}/"} for n in range(3)], max_datasets=3)
    modified = deployment.put("visits/a.json")
    route_arrivals(deployment.services, [file_of(f"d{n}/a.json") for n in range(3)])
    # When a rule {folder} replaces them, with room for one dataset
    deployment.configure(datasets=[{"name": "{folder}"}], max_datasets=3)
    deployment.now = modified + timedelta(hours=7)
    # Then the sweep adopts the file, as its event would, and reports nothing as beyond the limit
    assert sweep(deployment.services)["adopted"] == 1
    assert "visits/a.json" in owned_keys(deployment)
    # Nor does it report datasets that were admitted before the limit was lowered below their number
    deployment.configure(datasets=[{"name": "{folder}"}], max_datasets=1)
    find_datasets(repair(deployment))
    assert "raise it and deploy" not in caplog.text


def test_an_admitted_dataset_keeps_its_place_without_a_file(deployment: Deployment) -> None:
    # Given a dataset whose caller died right after the admission, and whose event was lost; no room is left
    deployment.configure(max_datasets=2)
    modified = deployment.put("clicks/a.json")
    deployment.now = modified + timedelta(hours=7)
    # When, Then
    assert sweep(deployment.services)["adopted"] == 1


@pytest.mark.parametrize("has_time", [True, False])
@pytest.mark.parametrize(
    ("listing", "hours", "days", "stalled"),
    [(LISTING, 6, 4, 0), (LISTING, 6, 5, 1), (LISTING, 168, 11, 0), (OLD_DAYS, 6, 27, 0), (OLD_DAYS, 6, 29, 1)],
)
def test_a_listing_that_is_far_behind_is_counted(
    deployment: Deployment,
    caplog: pytest.LogCaptureFixture,
    listing: str,
    *,
    hours: int,
    days: int,
    stalled: int,
    has_time: bool,
) -> None:
    # Given a round that began long ago, in which one dataset could not be listed
    deployment.configure(sweep={"listing_hours": hours})
    now = deployment.now = NOW
    long_ago = now - timedelta(days=days)
    covered, last = (time.strftime(HOUR_FORMAT) for time in (long_ago, now - timedelta(hours=3)))
    search = InputSearch(iso_utc(long_ago), "2026-10-01T00", last, covered, "orders", incomplete=True)
    repair = Repair(deployment.services, now + timedelta(minutes=has_time))
    repair.save_position(listing, asdict(search))
    # When, Then: this also holds for a sweep that has no time left for it
    search = adopt_missed(repair, listing)
    assert repair.counts["stalled"] == stalled
    # And the log contains the last complete hour
    assert vars(caplog.records[-1])["covered_until"] == search.covered_until


def test_old_days_do_not_lengthen_the_listing_of_recent_ones(deployment: Deployment) -> None:
    # Given five files of each old day, in the folder of that day, and one file of today without an event
    now = deployment.put("a file in no folder")
    days = [now - timedelta(days=30 + day) for day in range(40)]
    deployment.put(*(f"orders/{day:%Y/%m/%d}/{number}.json" for day in days for number in range(5)))
    # The emulated S3 skips the first key after a marker that names no version.
    today = f"orders/{now:%Y/%m/%d}"
    deployment.now = deployment.put(f"{today}/another.json", f"{today}/lost.json") + timedelta(hours=7)
    pages = list_pages(deployment, 5)
    # When
    found = repair(deployment)
    search = adopt_missed(found)
    # Then it lists one page of the dataset's old days, and one page of its recent days, which has the file
    assert [page["Prefix"] for page in pages] == ["", "clicks/", "orders/", "orders/"]
    assert found.counts["adopted"] == 5 + 1
    assert (search.dataset, search.passed_over) == (None, True)


def test_a_file_that_was_added_to_the_folder_of_an_old_day_is_found(deployment: Deployment) -> None:
    keys = [f"orders/2026/01/{day:02}/a.json" for day in range(1, 10)]
    deployment.now = deployment.put(*keys) + timedelta(hours=7)
    list_pages(deployment, 2)
    assert sweep(deployment.services)["adopted"] == len(keys)
    assert owned_keys(deployment) == keys


def test_a_round_of_recent_days_that_never_ends_leaves_time_for_old_ones(deployment: Deployment) -> None:
    # Given more files of today, by the clock of S3, than a sweep has time for, and one file of an old day
    now = deployment.put("orders/2026/01/02/a.json")
    today = [f"orders/{now:%Y/%m/%d}/{number:02}.json" for number in range(20)]
    deployment.now = deployment.put(*today) + timedelta(hours=7)
    repair(deployment).save_position(LISTING, asdict(InputSearch(passed_over=True)))
    list_pages(deployment, 1, lambda _: deployment.wait(timedelta(seconds=20)))
    # When
    sweep(deployment.services)
    # Then
    positions = [_read_search(repair(deployment), name) for name in (LISTING, OLD_DAYS)]
    assert [(found.dataset, found.progress.key_marker != "") for found in positions] == [("orders", True)] * 2


@pytest.mark.parametrize(
    ("key", "after"),
    [
        ("orders/2026/01/02/13/a.json", "orders/2026/11/16"),
        ("orders/date=2026-01-02/hour=13/a.json", "orders/date=2026-11-16"),
        ("orders/year=2025/month=12/day=31/a.json", "orders/year=2026/month=11/day=16"),
        ("orders/eu-1/20260102/a.json", "orders/eu-1/20261116"),
        ("orders/2026010213/a.json", "orders/20261116"),
        ("orders/2026/11/16/a.json", None),
        ("orders/2027/01/01/a.json", None),
        ("orders/a-2026-01-02.json", None),
        ("orders/part-202601021/a.json", None),
        ("orders/a.json", None),
    ],
)
def test_a_listing_continues_at_the_first_recent_day(key: str, after: str | None) -> None:
    found = skip_old_days(key, "2026-11-18T06")
    assert found == (after or key) >= key


@given(st.lists(st.tuples(st.integers(1, 60 * 24 * 30), st.booleans(), st.floats(10, 600)), min_size=1))
def test_rounds_join_without_a_gap_whenever_they_begin(plan: list[tuple[int, bool, float]]) -> None:
    # Given rounds at arbitrary times, some of which could not list a dataset, with changing settings
    search, now, covered = InputSearch(), NOW, ""
    for minutes, incomplete, missed_minutes in plan:
        now += timedelta(minutes=minutes)
        settings = SweepSettings(missed_minutes=missed_minutes)
        search = begin_round(search, ["orders"], now, settings)
        # Then each begins no later than the last hour that the complete rounds before it covered
        assert not covered or search.first <= covered
        assert search.first <= search.last or search.last < covered
        search = end_round(replace(search, incomplete=incomplete))
        if not incomplete:
            covered = max(covered, search.last)
        elif not covered:
            covered = search.first


def test_a_file_is_looked_up_in_as_many_rounds_as_its_price_has() -> None:
    search, settings, hour, found = InputSearch(), SweepSettings(), NOW.strftime(HOUR_FORMAT), 0
    for number in range(20):
        now = NOW + timedelta(hours=1 + number * settings.listing_hours)
        search = end_round(begin_round(search, ["orders"], now, settings))
        found += search.first <= hour <= search.last
    assert found == Units().reads_of_file


def test_a_dataset_that_cannot_be_listed_holds_back_no_other_and_is_listed_later(deployment: Deployment) -> None:
    # Given two datasets; S3 refuses to list the first
    modified = deployment.put("clicks/a.json", "orders/a.json")
    deployment.now = modified + timedelta(hours=7)
    refused = ["clicks/"]

    def refuse(request: dict[str, Any]) -> None:
        if request["Prefix"] in refused:
            raise RuntimeError("refused")

    list_pages(deployment, before=refuse)
    # When
    with pytest.raises(RuntimeError, match="refused"):
        sweep(deployment.services)
    # Then the second has an owner; the first gets one when it can be listed, however long that takes
    assert owned_keys(deployment) == ["orders/a.json"]
    refused.clear()
    deployment.wait(timedelta(days=7))
    sweep(deployment.services)
    assert owned_keys(deployment) == ["clicks/a.json", "orders/a.json"]
