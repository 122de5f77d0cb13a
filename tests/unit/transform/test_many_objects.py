"""A task of a file that expands to very many Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lake.settings import ConvertSettings
from tests.unit.transform.test_run_task import PARTITION, Bodies, ReadingUploads, version
from transform.run_task import run_task
from transform.task_model import Split, Task

if TYPE_CHECKING:
    from pathlib import Path


def test_a_task_writes_more_than_a_thousand_objects_under_keys_of_their_own(tmp_path: Path) -> None:
    # Given a target so small that every row is a Parquet file
    settings = ConvertSettings(target_file_bytes=1, row_group_bytes=1)
    uploads: Any = ReadingUploads()
    results = []
    # When two tasks run
    for number, rows in enumerate((1001, 2)):
        body = b"".join(b'{"c":"%d"}\n' % row for row in range(rows))
        file = version("a.json", body)
        source: Any = Bodies({"a.json": body})
        parts = (Split(file, 0, file.size),)
        task = Task("m", 1, PARTITION, number, parts, (), "lake", "quarantine", "eu-central-1", settings)
        results.append(run_task(task, source, uploads, tmp_path))
    # Then each object has a key of its own, and no row is missing
    keys = [item.key for result in results for item in result.objects]
    assert len(set(keys)) == len(keys) == len(uploads.rows) == 1003
