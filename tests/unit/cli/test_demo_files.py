"""The demo takes the files that the deployed settings take, under their own keys."""

import os
from pathlib import Path

import pytest

from cli.demo.run import demo_settings, run_demo
from cli.demo.sample_data import user_files
from lake.errors import InvalidInputError


def test_files_are_taken_by_suffix_in_any_case_and_named_by_their_folders(tmp_path: Path) -> None:
    # Given files in folders and at the top, of which one has another suffix, and two folders with one name
    data = tmp_path / "My Data"
    for name in (
        "Orders/A.NDJSON",
        "Orders/b.json.bz2",
        "web-logs/c.jsonl.Zst",
        "top.json",
        "web_logs/d.json",
        "n.csv",
    ):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_bytes(b"")
    # When
    files, skipped = user_files(data, demo_settings().datasets, tmp_path / "out")
    # Then each is in the dataset of its folder, under its own name
    assert [(file.key, file.dataset) for file in files] == [
        ("Orders/urgent/A.NDJSON", "orders"),
        ("Orders/b.json.bz2", "orders"),
        ("My Data/top.json", "my_data"),
        ("web-logs/urgent/c.jsonl.Zst", "web_logs"),
    ]
    assert skipped[data / "n.csv"] == "not an NDJSON suffix"
    assert "would share the dataset web_logs, which the folder 'web-logs' has" in skipped[data / "web_logs/d.json"]


@pytest.mark.parametrize("name", ["not\udcff.ndjson", "two\nlines.ndjson", "/".join(["d" * 250] * 5) + "/a.ndjson"])
def test_a_path_that_cannot_be_a_key_is_skipped(tmp_path: Path, name: str) -> None:
    data = tmp_path / "orders"
    for path in (data / name, data / "a.ndjson"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    files, skipped = user_files(data, demo_settings().datasets, tmp_path / "out")
    assert [file.key for file in files] == ["orders/urgent/a.ndjson"]
    assert [reason for path, reason in skipped.items() if path == data / name and "rename it" in reason]


def test_why_no_file_can_be_sent_is_named(tmp_path: Path) -> None:
    # Given a folder whose name gives no dataset
    data = tmp_path / "\u65e5\u672c"
    data.mkdir()
    (data / "a.ndjson").write_bytes(b"")
    (data / "NOTES.txt").write_bytes(b"")
    with pytest.raises(InvalidInputError, match=r"a\.ndjson: the folder .* gives no name of a dataset"):
        user_files(data, demo_settings().datasets, tmp_path / "out")
    # And a pipe, which is not a file
    os.mkfifo(tmp_path / "b.ndjson")
    with pytest.raises(InvalidInputError, match="holds no file that can be sent: name one that ends in"):
        user_files(tmp_path / "b.ndjson", demo_settings().datasets, tmp_path / "out")


def test_what_an_earlier_demo_has_written_is_not_input(tmp_path: Path) -> None:
    output = tmp_path / "out"
    for path in (tmp_path / "orders" / "a.ndjson", output / "quarantine" / "orders" / "b.jsonl"):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"")
    files, skipped = user_files(tmp_path, demo_settings().datasets, output)
    assert ([file.key for file in files], skipped) == (["orders/urgent/a.ndjson"], {})
    for data in (output, output / "quarantine"):
        with pytest.raises(InvalidInputError, match="is in the output folder"):
            user_files(data, demo_settings().datasets, output)


def test_the_output_of_a_conversion_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    with pytest.raises(InvalidInputError, match="is not empty, and the demo replaces what is there"):
        run_demo(None, tmp_path)
    with pytest.raises(InvalidInputError, match="does not exist"):
        run_demo(tmp_path / "nothing", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]
