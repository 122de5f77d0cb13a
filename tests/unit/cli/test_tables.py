"""Tables on terminals of 80 and 120 columns, and in a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import click
import pytest
from rich.cells import cell_len

from cli.terminal import format_table

EXECUTION = "3f1c6a52-8a0e-4a52-9d59-0c8c8e4f7a11"
NIGHTS = ("Nights, times in Europe/Berlin", ("began", "execution", "outcome"))
NIGHTS_NUMBERS = ("time", "files", "size", "rows", "quarantined", "unreadable")
NIGHTS_ROWS = [
    ("2026-11-20 22:00", EXECUTION, "SUCCEEDED_WITH_QUARANTINE", "3 h 12 min", "338,000", "1.5 PB", "9,812", "59", "5"),
    ("today 22:00", "manual-1", "FAILED", "41 s", "17", "12.1 MB", "150,000", "0", "0"),
]
NIGHT_NUMBERS = ("files", "size", "rows", "quarantined lines", "unreadable files", "manifests failed", "open")
NIGHT_ROWS = [
    ("orders", "1", "721.2 kB", "10,000", "0", "0", "0", "0"),
    ("web_logs", "12", "3.1 MB", "7", "1", "0", "0", "1"),
]
URI = "s3://hybrid-router-day-input-000000000000-eu-central-1/orders/2026/11/20/part 0001 東京.ndjson.gz"


def picture(text: str) -> str:
    """The characters that the terminal shows."""
    return "\n".join(line.rstrip() for line in click.unstyle(text).splitlines())


def test_nights_at_80_columns() -> None:
    assert picture(format_table(*NIGHTS, NIGHTS_NUMBERS, NIGHTS_ROWS, 80)) == picture(
        """\
Nights, times in Europe/Berlin
began  execution  outcome
        time    files     size     rows  quarantined  unreadable
2026-11-20 22:00  3f1c6a52-8a0e-4a52-9d59-0c8c8e4f7a11
SUCCEEDED_WITH_QUARANTINE
  3 h 12 min  338,000   1.5 PB    9,812           59           5
today 22:00  manual-1  FAILED
        41 s       17  12.1 MB  150,000            0           0"""
    )


def test_in_a_pipe_there_are_tabs() -> None:
    text = format_table("Datasets", ("dataset",), NIGHT_NUMBERS, [("a\tb", *NIGHT_ROWS[0][1:])], None)
    assert text.splitlines() == [
        "Datasets",
        "\t".join(("dataset", *NIGHT_NUMBERS)),
        "a b\t1\t721.2 kB\t10,000\t0\t0\t0\t0",
    ]


@pytest.mark.parametrize("width", [80, 120])
def test_a_uri_is_whole_and_sentences_are_wrapped(width: int) -> None:
    reason = "the line is not JSON: a bare word where a value is expected, " * 3
    text = format_table("", ("file", "reason"), ("lines",), [(URI, reason.strip(), "3")], width)
    lines = click.unstyle(text).splitlines()
    assert URI in lines
    others = [line for line in lines if line != URI]
    assert all(cell_len(line) <= width for line in others)
    assert reason.strip() in " ".join(line.strip() for line in others)


def test_more_numbers_than_fit_are_one_below_the_other() -> None:
    names = tuple(f"number{place}" for place in range(9))
    text = format_table("Wide", ("name",), names, [("x", *["1234567890"] * 9)], 80)
    assert click.unstyle(text).splitlines() == ["Wide", "name     x", *(f"{name}  1234567890" for name in names)]


@pytest.mark.parametrize("columns", [80, 120])
def test_the_width_is_that_of_the_terminal(columns: int) -> None:
    # Given a terminal of this width
    mine, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    code = "from cli.terminal import print_table\nprint_table('T', ('a', 'b'), ('n',), [('x' * 50, 'y' * 40, '1')])"
    environment = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    # When
    subprocess.run([sys.executable, "-c", code], stdout=its, check=True, env=environment)
    shown = os.read(mine, 10_000).decode()
    os.close(mine)
    os.close(its)
    # Then
    assert (f"{'x' * 50}  {'y' * 40}  1" in shown) == (columns == 120)
    assert f"{'y' * 40}" in shown
