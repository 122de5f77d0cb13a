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
    rows = 1001
    body = b"".join(b'{"c":"%d"}\n' % number for number in range(rows))
    file = version("a.json", body)
    settings = ConvertSettings(target_file_bytes=1, row_group_bytes=1)
    source: Any = Bodies({"a.json": body})
    uploads: Any = ReadingUploads()
    # When two such tasks run
    results = [
        run_task(
            Task(
                "m",
                1,
                PARTITION,
                number,
                (Split(file, 0, file.size),),
                (),
                "lake",
                "quarantine",
                "eu-central-1",
                settings,
            ),
            source,
            uploads,
            tmp_path,
        )
        for number in range(2)
    ]
    # Then each object has a key of its own, and no row is missing
    keys = [item.key for result in results for item in result.objects]
    assert len(set(keys)) == len(keys) == len(uploads.rows) == 2 * rows
