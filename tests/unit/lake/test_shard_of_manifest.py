"""Which shard a manifest goes to: a table of cases, and what a hash has to hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from lake.errors import InvalidSettingsError
from lake.layout import inbox, manifest_of_pointer, pointer_key
from lake.settings import parse_settings
from lake.shards import MAX_SHARDS, Shards
from tests.unit.lake.world import RESOURCES

OWN = {"orders": "fast", "clicks": "fast", "tracks": "tracks"}
FOLDER = {"name": "{folder}"}


@pytest.mark.parametrize(
    ("shards", "dataset", "manifest", "shard"),
    [
        # One job has them all, whatever is spread.
        (Shards(), "orders", "20261120T093000Z-1", "1"),
        (Shards(1, "manifest"), "orders", "20261120T093000Z-1", "1"),
        # A dataset stays together. The numbers are fixed: another version of Python, or of us, finds the same.
        (Shards(3), "orders", "20261120T093000Z-1", "2"),
        (Shards(3), "orders", "20261120T093000Z-3", "2"),
        (Shards(3), "clicks", "20261120T093000Z-1", "2"),
        (Shards(3), "tracks", "20261120T093000Z-1", "1"),
        # Each manifest goes its own way.
        (Shards(3, "manifest"), "orders", "20261120T093000Z-1", "3"),
        (Shards(3, "manifest"), "orders", "20261120T093000Z-3", "2"),
        (Shards(3, "manifest"), "clicks", "20261120T093000Z-1", "3"),
        # A job of its own is for the dataset alone, or for those that share its name.
        (Shards(3, "manifest", OWN), "orders", "20261120T093000Z-1", "fast"),
        (Shards(3, "dataset", OWN), "clicks", "20261120T093000Z-2", "fast"),
        (Shards(1, "dataset", OWN), "tracks", "20261120T093000Z-2", "tracks"),
        (Shards(1, "dataset", OWN), "others", "20261120T093000Z-2", "1"),
    ],
)
def test_the_shard_of_a_manifest(shards: Shards, dataset: str, manifest: str, shard: str) -> None:
    assert shards.of(dataset, manifest) == shard
    assert shard in shards.of_dataset(dataset)
    assert shard in shards.names


def test_manifests_are_spread_evenly() -> None:
    # Given the ids of a morning
    shards = Shards(4, "manifest")
    # When, Then
    counts = Counter(shards.of("orders", f"20261120T0930{number:04d}") for number in range(4000))
    assert counts.keys() == set(shards.names)
    assert min(counts.values()) > 900


def test_one_shard_more_leaves_the_names_of_the_others() -> None:
    assert Shards(2, own=OWN).names == ("1", "2", "fast", "tracks")
    assert Shards(3, own=OWN).names == ("1", "2", "3", "fast", "tracks")


def test_the_text_of_a_stack_output_gives_the_same_shards() -> None:
    shards = Shards(3, "manifest", OWN)
    assert Shards.from_text(shards.to_text()) == shards


def test_the_first_shard_has_the_names_that_a_single_job_had() -> None:
    assert inbox("1") == "inbox/"
    assert RESOURCES.stream_job_of("1") == RESOURCES.stream_job


@pytest.mark.parametrize("shard", ["1", "2", "tracks"])
@pytest.mark.parametrize("urgent", [False, True])
def test_a_pointer_is_in_the_inbox_of_its_shard(shard: str, urgent: bool) -> None:
    key = pointer_key("20261120T093000Z-1", "n", urgent=urgent, shard=shard)
    assert key.startswith(inbox(shard))
    assert manifest_of_pointer(key) == "20261120T093000Z-1"
    # No listing of one inbox has the pointers of another one
    assert sum(key.startswith(inbox(other)) for other in ("1", "2", "tracks")) == 1


def test_settings_name_the_shards() -> None:
    rules = [
        {"name": "orders", "prefix": "orders/", "stream_job": "fast"},
        {"name": "orders", "prefix": "old/orders/", "stream_job": "fast"},
        {"name": "clicks", "prefix": "clicks/"},
        FOLDER,
    ]
    settings = parse_settings({"stage": "t", "datasets": rules, "stream": {"jobs": 2, "spread": "manifest"}})
    assert settings.shards == Shards(2, "manifest", {"orders": "fast"})
    # And each job has its workers
    one = parse_settings({"stage": "t"})
    assert (one.stream_runs, settings.stream_runs) == (1, 3)
    assert settings.stream_dpus == 3 * one.stream_dpus


@pytest.mark.parametrize(
    ("key", "body"),
    [
        ("stream.jobs", {"stream": {"jobs": 0}}),
        ("stream.jobs", {"stream": {"jobs": MAX_SHARDS + 1}}),
        ("stream.jobs", {"stream": {"jobs": MAX_SHARDS}, "datasets": [{"name": "orders", "stream_job": "orders"}]}),
        ("stream.spread", {"stream": {"spread": "file"}}),
        # A number is the name of a numbered one.
        ("datasets.stream_job", {"datasets": [{"name": "orders", "stream_job": "2"}]}),
        ("datasets.stream_job", {"datasets": [{"name": "{folder}", "stream_job": "own"}]}),
        (
            "datasets.stream_job",
            {"datasets": [{"name": "orders", "prefix": "a/", "stream_job": "own"}, {"name": "orders", "prefix": "b/"}]},
        ),
        # The nights need room beside them.
        ("quota.dpus", {"stream": {"jobs": 5}, "quota": {"dpus": 55}}),
    ],
)
def test_wrong_shards_are_refused(key: str, body: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingsError) as raised:
        parse_settings({"stage": "t", **body})
    assert raised.value.key == key


def test_the_rest_of_the_quota_is_that_of_all_streaming_jobs() -> None:
    # Given the defaults: runs of 10 DPU, and 10 DPU for each streaming job
    nights = {jobs: parse_settings({"stage": "t", "stream": {"jobs": jobs}}).max_overnight_runs for jobs in (1, 2, 20)}
    # Then
    assert nights == {1: 49, 2: 48, 20: 30}
