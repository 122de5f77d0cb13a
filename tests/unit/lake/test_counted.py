"""A number in a text gets its noun by ``lake.texts``."""

from __future__ import annotations

import pytest

from lake.texts import format_count


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (format_count(0, "file"), "0 files"),
        (format_count(1, "file"), "1 file"),
        (format_count(2000, "file"), "2,000 files"),
        (format_count(1, "file is", "files are"), "1 file is"),
        (format_count(2, "file is", "files are"), "2 files are"),
        (format_count(1.5, "minute"), "1.5 minutes"),
    ],
)
def test_a_number_gets_its_noun(text: str, expected: str) -> None:
    assert text == expected
