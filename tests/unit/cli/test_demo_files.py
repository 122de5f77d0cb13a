"""The demo takes the files that the deployed settings take, under their own keys."""

from __future__ import annotations

from pathlib import Path

from cli.demo.run import demo_settings
from cli.demo.sample_data import user_files


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
    files, skipped = user_files(data, demo_settings().datasets)
    # Then each is in the dataset of its folder, under its own name
    assert [(file.key, file.dataset) for file in files] == [
        ("Orders/urgent/A.NDJSON", "orders"),
        ("Orders/b.json.bz2", "orders"),
        ("My Data/top.json", "my_data"),
        ("web-logs/urgent/c.jsonl.Zst", "web_logs"),
    ]
    assert skipped[data / "n.csv"] == "not an NDJSON suffix"
    assert "would share the dataset web_logs, which the folder 'web-logs' has" in skipped[data / "web_logs/d.json"]
