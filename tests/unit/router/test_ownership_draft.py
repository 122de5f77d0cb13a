"""cut_drafts: arrivals to drafts; nothing is lost, duplicated or mixed."""

import itertools
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from lake.manifest import Lane, Partition
from lake.settings import parse_settings
from router.ownership import RoutedArrival, cut_drafts
from tests.unit.lake.world import PARTITION, file_of

SETTINGS = parse_settings(
    {
        "stage": "t",
        "stream": {"manifest_bytes": 100, "manifest_files": 3},
    }
)
arrivals = st.lists(
    st.builds(
        lambda number, size, partition, lane, urgent: RoutedArrival(
            file_of(f"{number}", size), partition, lane, "why", urgent=urgent
        ),
        st.integers(),
        st.integers(0, 150),
        st.sampled_from([PARTITION, Partition("clicks", "2026-11-20", 9), Partition("orders", "2026-11-20", 10)]),
        st.sampled_from(list(Lane)),
        st.booleans(),
    ),
    unique_by=lambda arrival: arrival.file.key,
)


def numbered() -> object:
    numbers = itertools.count()
    return lambda: f"m{next(numbers)}"


@given(arrivals)
def test_every_arrival_is_in_exactly_one_draft_of_its_kind(given_arrivals: list[RoutedArrival]) -> None:
    drafts = cut_drafts(given_arrivals, SETTINGS, numbered())  # type: ignore[arg-type]
    held = Counter(arrival.file.key for draft in drafts for arrival in draft.arrivals)
    assert held == Counter(arrival.file.key for arrival in given_arrivals)
    assert len({draft.id for draft in drafts}) == len(drafts)
    for draft in drafts:
        assert draft.arrivals
        if draft.lane == Lane.BATCH:
            assert {arrival.lane for arrival in draft.arrivals} == {Lane.BATCH}
            assert len({arrival.partition.stamp for arrival in draft.arrivals}) == 1
            continue
        kinds = {(arrival.partition, arrival.lane, arrival.urgent) for arrival in draft.arrivals}
        assert kinds == {(draft.partition, draft.lane, draft.urgent)}
        assert len(draft.arrivals) <= SETTINGS.stream.manifest_files
        size = sum(arrival.file.size for arrival in draft.arrivals)
        assert size <= SETTINGS.stream.manifest_bytes or len(draft.arrivals) == 1


def test_an_invocation_has_one_draft_for_each_hour_of_the_batch_lane() -> None:
    hours = [Partition(dataset, "2026-11-20", hour) for hour in (9, 10) for dataset in ("orders", "clicks")]
    routed = [
        RoutedArrival(file_of(f"{number}", 500), hour, Lane.BATCH, "why") for number, hour in enumerate(hours * 9)
    ]
    drafts = cut_drafts(routed, SETTINGS, numbered())  # type: ignore[arg-type]
    assert [len(draft.arrivals) for draft in drafts] == [18, 18]


def test_a_draft_is_filled_to_its_limit() -> None:
    # Given six files of half a draft each
    routed = [RoutedArrival(file_of(f"{number}", 50), PARTITION, Lane.STREAM, "why") for number in range(6)]
    drafts = cut_drafts(routed, SETTINGS, numbered())  # type: ignore[arg-type]
    assert [len(draft.arrivals) for draft in drafts] == [2, 2, 2]
