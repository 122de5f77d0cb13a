"""Tables on terminals of 80 and 120 columns, and in a pipe."""

import sys

import click
import pytest

from cli.terminal import format_table, print_table

NIGHTS = ("Nights", ("began", "execution", "outcome"), ("files", "rows"))
ROWS = [
    ("2026-11-20 22:00", "3f1c6a52-8a0e-4a52-9d59-0c8c8e4f7a11", "SUCCEEDED_WITH_QUARANTINE", "338,000", "東京 1"),
    ("today 22:00", "manual-1\t", "FAILED", "17", "150,000"),
]


def test_the_widest_column_is_below_its_row_where_all_do_not_fit() -> None:
    assert click.unstyle(format_table(*NIGHTS, ROWS, 80)).splitlines() == [
        "Nights",
        "began             outcome                      files     rows",
        "2026-11-20 22:00  SUCCEEDED_WITH_QUARANTINE  338,000   東京 1",
        "  execution: 3f1c6a52-8a0e-4a52-9d59-0c8c8e4f7a11",
        "today 22:00       FAILED                          17  150,000",
        "  execution: manual-1\t",
    ]


def test_a_short_name_stays_in_its_row() -> None:
    numbers = ("files done", "size done", "rows", "quarantined", "unreadable", "manifests failed", "open")
    rows = [("production_orders_eu", "17", "12.1 MB", "150,000", "0", "1", "2", "3")]
    assert click.unstyle(format_table("", ("dataset",), numbers, rows, 80)).splitlines() == [
        "dataset               files done  size done     rows  unreadable  open",
        "production_orders_eu          17    12.1 MB  150,000           1     3",
        "  quarantined: 0",
        "  manifests failed: 2",
    ]


def test_in_a_pipe_there_are_tabs() -> None:
    assert format_table(*NIGHTS, ROWS, None).splitlines() == [
        "Nights",
        "\t".join((*NIGHTS[1], *NIGHTS[2])),
        "\t".join(ROWS[0]),
        "today 22:00\tmanual-1 \tFAILED\t17\t150,000",
    ]


@pytest.mark.parametrize("columns", [80, 120])
def test_the_width_is_that_of_the_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_table("T", ("a", "b"), ("n",), [("x" * 50, "y" * 40, "1")])
    assert (f"{'x' * 50}  {'y' * 40}  1" in capsys.readouterr().out) == (columns == 120)


def test_a_closed_output_changes_no_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    print_table(*NIGHTS, ROWS)
