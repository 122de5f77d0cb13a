"""Which shard a manifest goes to: a table of cases, and what a hash has to hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from lake.errors import InvalidSettingsError
from lake.layout import inbox, manifest_of_pointer, pointer_key
from lake.settings import parse_settings
from lake.shards import MAX_SHARDS, Shards


@pytest.mark.parametrize(
    ("jobs", "manifest", "shard"),
    [
        (1, "20261120T093000Z-1", "1"),
        # The numbers are fixed: another version of Python, or of the product, finds the same.
        (3, "20261120T093000Z-1", "3"),
        (3, "20261120T093000Z-3", "2"),
    ],
)
def test_the_shard_of_a_manifest(jobs: int, manifest: str, shard: str) -> None:
    assert Shards(jobs).of(manifest) == shard
    assert shard in Shards(jobs).names


def test_manifests_are_spread_evenly() -> None:
    # Given the ids of a morning
    shards = Shards(4)
    # When, Then
    counts = Counter(shards.of(f"20261120T0930{number:04d}") for number in range(4000))
    assert counts.keys() == set(shards.names)
    assert min(counts.values()) > 900


@pytest.mark.parametrize("shard", ["1", "2", "20"])
@pytest.mark.parametrize("urgent", [False, True])
def test_a_pointer_is_in_the_inbox_of_its_shard(shard: str, urgent: bool) -> None:
    key = pointer_key("20261120T093000Z-1", "n", urgent=urgent, shard=shard)
    assert key.startswith(inbox(shard))
    assert manifest_of_pointer(key) == "20261120T093000Z-1"
    # No listing of one inbox has the pointers of another one
    assert sum(key.startswith(inbox(other)) for other in ("1", "2", "20")) == 1


@pytest.mark.parametrize(
    ("key", "body"),
    [
        ("stream.jobs", {"stream": {"jobs": 0}}),
        ("stream.jobs", {"stream": {"jobs": MAX_SHARDS + 1}}),
        # The nights need room beside them.
        ("quota.dpus", {"stream": {"jobs": 5}, "quota": {"dpus": 55}}),
    ],
)
def test_wrong_shards_are_refused(key: str, body: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingsError) as raised:
        parse_settings({"stage": "t", **body})
    assert raised.value.key == key
