"""Arrivals of a listing: the files of one day, each in its window, by the keys' own lanes."""

from datetime import date
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from lake.errors import InvalidInputError
from sizing.arrivals import windows_of_day
from sizing.listing import ListedArrivals, read_csv
from sizing.schedule import night_start
from tests.unit.docs.pages import CHECKOUT
from tests.unit.sizing.world import settings

HEADER = "key,size,time\n"
LISTING = (
    HEADER
    + "orders/a.json,100,2026-11-18T09:00:00Z\n"
    + "orders/b.json,100,2026-11-18T09:00:19Z\n"
    + "orders/urgent/c.json,300,2026-11-18T10:00:20+01:00\n"
    + '"clicks/d, e.json.gz",400,2026-11-18T21:59:59\n'
    + "orders/f.json,500,2026-11-18T22:00:00Z\n"
)


def listed(tmp_path: Path, text: str, day: date = date(2026, 11, 18)) -> ListedArrivals:
    path = tmp_path / "listing.csv"
    path.write_text(text, encoding="utf-8")
    return ListedArrivals(read_csv(path), str(path), settings(), night_start(settings(), day))


def test_every_file_of_the_day_is_in_its_window(tmp_path: Path) -> None:
    found = listed(tmp_path, LISTING)
    windows = list(found.windows())
    assert len(windows) == windows_of_day(settings()) == 4320
    nine = 11 * 180
    assert {window: groups for window, groups in enumerate(windows) if groups}.keys() == {
        nine,
        nine + 1,
        len(windows) - 1,
    }
    assert [(group.key, group.bytes, group.count) for group in windows[nine]] == [("orders/a.json", 100, 2)]
    assert [group.key for group in windows[nine + 1]] == ["orders/urgent/c.json"]
    assert [group.key for group in windows[-1]] == ["clicks/d, e.json.gz"]
    assert found.left_out == 1


def test_the_order_of_the_lines_does_not_matter(tmp_path: Path) -> None:
    backwards = HEADER + "\n".join(reversed(LISTING.removeprefix(HEADER).splitlines())) + "\n"
    sizes = [
        {
            window: sorted((group.bytes, group.count) for group in groups)
            for window, groups in enumerate(found.windows())
        }
        for found in (listed(tmp_path, LISTING), listed(tmp_path, backwards))
    ]
    assert sizes[0] == sizes[1]


def test_the_date_chooses_the_night(tmp_path: Path) -> None:
    found = listed(tmp_path, LISTING, date(2026, 11, 19))
    assert [group.bytes for groups in found.windows() for group in groups] == [500]
    assert found.left_out == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("key,size\n", "has no column time: .* key, size, time"),
        ("", "has no column key"),
        (HEADER + "a/b.json,1e3,2026-11-18T09:00:00Z\n", "line 2: size = '1e3'"),
        (HEADER + "a/b.json,,2026-11-18T09:00:00Z\n", "line 2: size = ''"),
        (HEADER + "a/b.json,1,18.11.2026\n", "line 2: time = '18.11.2026'"),
        (HEADER + "a/b.json,1\n", "line 2: time = ''"),
    ],
)
def test_a_wrong_listing_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        listed(tmp_path, text)


def test_a_listing_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"missing\.csv cannot be read"):
        list(read_csv(tmp_path / "missing.csv"))


def test_a_date_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no file of the 24 hours before 2026-11-10"):
        listed(tmp_path, LISTING, date(2026, 11, 10))


def command(tmp_path: Path, *options: str) -> tuple[int, str]:
    path = tmp_path / "listing.csv"
    path.write_text(LISTING, encoding="utf-8")
    dev = CHECKOUT / "settings" / "dev.toml"
    found = CliRunner().invoke(app, ["simulate", "--settings", str(dev), *(part.format(path) for part in options)])
    return found.exit_code, found.output


def test_the_command_simulates_a_listing(tmp_path: Path) -> None:
    code, output = command(tmp_path, "--from-csv", "{}", "--date", "2026-11-18")
    assert code == 0
    assert "1 file of other days is left out" in output or "2 files of other days are left out" in output
    assert "hybrid" in output


def test_the_command_takes_either_a_profile_or_a_listing(tmp_path: Path) -> None:
    assert command(tmp_path)[0] == command(tmp_path, "{}", "--from-csv", "{}")[0] == 2
