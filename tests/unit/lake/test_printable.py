"""Text of others becomes one line of visible characters, wherever a person or an alarm reads it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.errors import errors_on_stderr
from lake.errors import InvalidInputError
from lake.texts import printable
from router.settle.verdict import ExecutionOutcome, Verdict, format_notification
from transform.job_main import print_line

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "orders/\x1b[2J\nALARM \u202e\u2028.json"
VISIBLE = r"orders/\x1b[2J\nALARM \u202e\u2028.json"


def test_what_cannot_be_seen_is_escaped() -> None:
    assert printable(KEY) == VISIBLE
    assert printable("größe 😀 \\ ~") == "größe 😀 \\ ~"
    assert printable("\0\x7f\x85\xa0\ud800") == r"\x00\x7f\x85\xa0\ud800"


@pytest.mark.parametrize(
    "char", ["\u3164", "\u115f", "\u1160", "\uffa0", "\u2800", "\u034f", "\ufe0f", "\U000e0100", "\u180b", "\u17b4"]
)
def test_letters_that_show_nothing_are_escaped(char: str) -> None:
    assert printable(f"a{char}b") == f"a{char.encode('unicode_escape').decode()}b"


def test_letters_that_are_read_from_right_to_left_do_not_reorder_a_name() -> None:
    assert printable("a/\u05d0\u05d11.json \u0627\u0661") == r"a/\u05d0\u05d11.json \u0627\u0661"


@given(st.text(st.characters()))
def test_it_is_one_line_that_can_be_written_anywhere(text: str) -> None:
    assert printable(text).isprintable()
    printable(text).encode()


def _log(key: str) -> None:
    print_line(f"{key} was rejected")


def _fail(key: str) -> None:
    with pytest.raises(SystemExit), errors_on_stderr(debug=False):
        raise InvalidInputError(f"{key} was rejected")


def _mail(key: str) -> None:
    verdict = Verdict(ExecutionOutcome.FAILED, 0, 1, 0, 0, 0, 0, 0, 0, message=f"{key} was rejected")
    sys.stdout.write(format_notification("x", verdict, (), stage="dev"))


@pytest.mark.parametrize("write", [_log, _fail, _mail])
def test_a_key_cannot_command_a_terminal(write: Callable[[str], None], capsys: pytest.CaptureFixture[str]) -> None:
    write(KEY)
    written = "".join(capsys.readouterr())
    assert "\x1b" not in written
    assert "\u202e" not in written
    assert "orders/\\x1b[2J" in written
