"""The portions of a micro-batch."""

import pytest

from lake.cut import cut


@pytest.mark.parametrize(
    ("seconds", "files", "expected"),
    [
        ((1, 1, 1), (0, 0, 0), ["abc"]),
        ((2, 2, 9, 1), (0, 0, 0, 0), ["a", "b", "c", "d"]),
        ((0, 3, 0), (0, 0, 0), ["abc"]),
        ((), (), []),
        ((0, 0, 0, 0, 0), (40, 60, 1, 120, 1), ["ab", "c", "d", "e"]),
    ],
)
def test_small_manifests_share_a_portion_a_large_one_has_its_own_and_the_order_stays(
    seconds: tuple[int, ...], files: tuple[int, ...], expected: list[str]
) -> None:
    sizes = dict(zip("abcde", zip(seconds, files, strict=True), strict=False))
    assert ["".join(piece) for piece in cut(sizes, sizes.__getitem__, (3, 100))] == expected
