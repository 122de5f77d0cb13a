"""The demo takes the files that the deployed settings take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.demo.files import user_files

if TYPE_CHECKING:
    from pathlib import Path


def test_files_are_taken_by_suffix_in_any_case_and_named_without_it(tmp_path: Path) -> None:
    for name in ("Orders.NDJSON", "clicks.json.bz2", "views.jsonl.Zst", "notes.csv"):
        (tmp_path / name).write_bytes(b"")
    files, left_out = user_files(tmp_path)
    assert sorted(file.dataset for file in files) == ["clicks", "orders", "views"]
    assert [path.name for path in left_out] == ["notes.csv"]
