"""The output of `hybrid-router convert`, compared with the oracle's result for the input files."""

import bz2
import gzip
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq

from tests.oracle import ndjson_oracle

MAX_NAMED = 20
"""Maximum number of lost rows, and of surplus ones, that a sentence names."""


def prove(inputs: Iterable[tuple[Path, str, str]], output: Path) -> list[str]:
    """Every difference between the inputs, each as (path, URI, dataset), and the folders ``lake`` and ``quarantine``.

    Rows are compared with all their values, rejected lines by their number in each file.
    """
    expected: Counter[str] = Counter()
    for path, uri, dataset in inputs:
        data = _content(path)
        if data is None:
            expected[f"{uri}: the whole file"] += 1
            continue
        found = ndjson_oracle.read(data)
        expected.update(_row(dataset, row) for _, row in found.rows)
        expected[f"{uri}: a line"] += len(found.rejects)
    written = Counter(_row(dataset.name, row) for dataset in (output / "lake").iterdir() for row in _rows(dataset))
    for path in (output / "quarantine").rglob("*.jsonl"):
        for record in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            kind = "the whole file" if record["kind"] == "file" else "a line"
            written[f"{record['source']}: {kind}"] += record.get("count", 1)
    return differences("the output", expected, written)


def differences(where: str, expected: Counter[str], found: Counter[str]) -> list[str]:
    """Return sentences with the numbers of missing and surplus rows in ``where``, and examples; a change is in both."""
    kinds = {"lacks": expected - found, "has too often": found - expected}
    return [
        f"{where} {kind} {items.total()}: {', '.join(sorted(items)[:MAX_NAMED])}"
        for kind, items in kinds.items()
        if items
    ]


def _content(path: Path) -> bytes | None:
    """The bytes of an input file, decompressed; None if it cannot be read to its end."""
    data = path.read_bytes()
    decompress = {b"\x1f\x8b": gzip.decompress, b"BZ": bz2.decompress}.get(data[:2])
    try:
        return data if decompress is None else decompress(data)
    except (OSError, EOFError, ValueError):
        return None


def _rows(dataset: Path) -> list[dict[str, str | None]]:
    return [row for path in dataset.rglob("*.parquet") for row in pq.read_table(path, partitioning=None).to_pylist()]


def _row(dataset: str, row: dict[str, str] | dict[str, str | None]) -> str:
    values = {name: value for name, value in row.items() if value is not None}
    return f"{dataset}: {json.dumps(values, sort_keys=True)}"
