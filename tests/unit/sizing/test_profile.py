"""The profile of a simulated day: what is wrong is named with its key, its value and what is allowed."""

from pathlib import Path
from typing import Any

import pytest

from lake.errors import InvalidInputError
from sizing.profile import Profile, load_profile, parse_profile

SIZES = [{"bytes": 1000}]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"sizes": SIZES}, ("files", "None", "required")),
        ({"files": 1}, ("sizes", "required")),
        ({"files": 1, "sizes": []}, ("sizes", "[[sizes]]")),
        ({"files": 0, "sizes": SIZES}, ("files", "0", "from 1 to")),
        ({"files": 1, "sizes": [{"bytes": 0}]}, ("sizes.bytes", "0", "from 1 to")),
        ({"files": 1, "sizes": [{"bytes": 1, "share": 0}]}, ("sizes", "share above 0")),
        ({"files": 1, "sizes": [{"byte": 1}]}, ("sizes.byte", "known: bytes, share")),
        ({"files": 1, "sizes": SIZES, "files_a_day": 2}, ("files_a_day", "2", "known: files")),
        ({"files": 1, "sizes": SIZES, "datasets": 1.5}, ("datasets", "1.5", "a whole number")),
        ({"files": 1, "sizes": SIZES, "datasets": 10_001}, ("datasets", "10001", "from 1 to 10000")),
        ({"files": 1, "sizes": SIZES * 26, "datasets": 100}, ("sizes", "2600", "at most 2500")),
        ({"files": 1, "sizes": SIZES, "urgent_share": 1.1}, ("urgent_share", "1.1", "from 0 to 1")),
        ({"files": 1, "sizes": SIZES, "gzip_share": 2}, ("gzip_share", "2", "from 0 to 1")),
        ({"files": 1, "sizes": SIZES, "curve": [1, 2]}, ("curve", "24 weights")),
        ({"files": 1, "sizes": SIZES, "curve": [0] * 24}, ("curve", "24 weights")),
        ({"files": 1, "sizes": SIZES, "date": "yesterday"}, ("date", "yesterday", "2026-11-18")),
    ],
)
def test_a_wrong_profile_is_refused_with_key_value_and_what_is_allowed(body: Any, named: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_profile(body)
    assert [part for part in ("profile: ", *named) if part not in str(caught.value)] == []


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("files = ", encoding="utf-8")
    for path in (broken, tmp_path / "missing.toml"):
        with pytest.raises(InvalidInputError, match=path.name):
            load_profile(path)


def test_a_file_of_every_key_is_a_profile(tmp_path: Path) -> None:
    path = tmp_path / "profile.toml"
    path.write_text(
        """
        files = 10
        date = "2026-11-19"
        datasets = 2
        curve = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0]
        urgent_share = 0.1
        gzip_share = 0.5
        [[sizes]]
        bytes = 1000
        [[sizes]]
        bytes = 2000
        share = 3
        """,
        encoding="utf-8",
    )
    found = load_profile(path)
    assert isinstance(found, Profile)
    assert [size.share for size in found.sizes] == [1, 3]
    assert found.gzip_share == 0.5
