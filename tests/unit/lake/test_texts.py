"""Texts for people: numbers with their nouns, commands with the stage's options, and only visible characters."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.errors import errors_on_stderr
from lake.errors import InvalidInputError
from lake.texts import (
    advise_reprocess,
    explain_command,
    format_count,
    printable,
    reprocess_file_command,
    shell_word,
    with_options,
)
from router.settle.verdict import ExecutionOutcome, Verdict, format_notification
from transform.job_main import print_line


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


KEY = "orders/\x1b[2J\nALARM \u202e\u2028.json"
NAME = "s3://b/it's "
LOCAL, AWS = " --stage day --local", " --stage prod --profile ops"


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (f"x; {advise_reprocess('m1')}", LOCAL, "'hybrid-router reprocess --manifest m1 --stage day --local'"),
        ("'hybrid-router reprocess --manifest m1 --all'", AWS, f"reprocess --manifest m1 --all{AWS}'"),
        ("run 'hybrid-router nights --stage prod'.", AWS, f"'hybrid-router nights{AWS}'."),
        ("run 'hybrid-router status --stage day --local'", LOCAL, "'hybrid-router status --stage day --local'"),
        ("run 'hybrid-router doctor'", LOCAL, "'hybrid-router doctor --stage day'"),
        ("'hybrid-router local ls' or 'hybrid-router hours'", LOCAL, "local ls' or 'hybrid-router hours --st"),
        ("it is archived, then run: hybrid-router reprocess 's3://b/a b'", AWS, f"reprocess 's3://b/a b'{AWS}"),
        (f"(then run: {reprocess_file_command(NAME)}); it stays", AWS, f"reprocess {shell_word(NAME)}{AWS}); it stays"),
        (f"(then run: {reprocess_file_command(KEY)}); it stays", AWS, f"reprocess {shell_word(KEY)}{AWS}); it stays"),
        ("run: hybrid-router try 'a b'\nrun: hybrid-router status", AWS, f"try 'a b'\nrun: hybrid-router status{AWS}"),
        ("no command", LOCAL, "no command"),
    ],
)
def test_an_advised_command_gets_the_options_of_the_stage(text: str, options: str, expected: str) -> None:
    assert expected in with_options(text, options)


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        (KEY, r"orders/\x1b[2J\nALARM \u202e\u2028.json"),
        ("größe 😀 \\ ~", "größe 😀 \\ ~"),
        ("\0\x7f\x85\xa0\ud800", r"\x00\x7f\x85\xa0\ud800"),
        # Invisible letters
        ("\u3164\u115f\u1160\uffa0\u2800\u034f", r"\u3164\u115f\u1160\uffa0\u2800\u034f"),
        ("\ufe0f\U000e0100\u180b\u17b4", r"\ufe0f\U000e0100\u180b\u17b4"),
        # Letters that are read from right to left would reorder a name.
        ("a/\u05d0\u05d11.json \u0627\u0661", r"a/\u05d0\u05d11.json \u0627\u0661"),
    ],
)
def test_what_cannot_be_seen_is_escaped(text: str, visible: str) -> None:
    assert printable(text) == visible


@given(st.text(st.characters()))
def test_it_is_one_line_that_can_be_written_anywhere(text: str) -> None:
    assert printable(text).isprintable()
    printable(text).encode()


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
@pytest.mark.parametrize(
    "key", [KEY, "a/it's $HOME\\ `x`\u05d0b\x85\U000e0100 größe😀+%41", "a\n1f", "a b", "a", os.fsdecode(b"a \xff")]
)
def test_an_advised_command_names_a_key_that_cannot_be_seen_so_that_a_shell_reads_it(key: str, locale: str) -> None:
    command = explain_command(key)
    assert command == printable(command)
    word = command.removeprefix("hybrid-router explain ")
    shell = subprocess.run(["bash", "-c", f"printf %s {word}"], env={"LC_ALL": locale}, capture_output=True, check=True)
    assert shell.stdout == os.fsencode(key)


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
