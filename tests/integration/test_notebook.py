"""docs/notebooks/: every cell runs, on a file that is not in the repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "notebooks" / "own_files.ipynb"
LINES = ['{"id": 1, "userId": "a", "tags": ["x"]}', "not a row", '{"id": 2.50, "note": null}', "", '{"id": 3}']


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    # Given
    monkeypatch.chdir(tmp_path)
    Path("events.ndjson").write_text("\n".join(LINES))
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    # When
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    # Then it used the session of the tests, and the columns are in order of their longest value
    assert names["spark"] is spark
    assert names["rows"]["id"].to_list() == ["1", "2.50", "3"]
    assert names["widest"]["column"].to_list()[:2] == ["tags", "id"]
