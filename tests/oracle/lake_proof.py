"""The independent proof: it shares no code with the conversion and uses no figure that the product reports.

It reads the input files with Python's standard library (zstd with pyarrow), the published Parquet with pyarrow and the
quarantine as JSON lines. For each file: lines = rows + quarantined + blank lines. For each dataset: the lake and the
input have the same number of rows and the same checksum, which covers every (key, value) of every row and does not
depend on their order.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lake.texts import format_count
from verify.line_rules import pairs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MODULUS = 1 << 128
MAX_LINE_BYTES = 16 << 20
"""The default of the setting convert.max_line_bytes: the product quarantines longer lines."""


@dataclass(slots=True)
class InputCount:
    """The lines of one input file."""

    uri: str
    dataset: str
    lines: int = 0
    blank: int = 0
    rows: int = 0
    invalid: int = 0
    unreadable: str | None = None
    """The reason why the file cannot be read to its end."""


@dataclass(slots=True)
class Proof:
    """The counts of inputs, lake and quarantine, and every difference as a sentence."""

    inputs: dict[str, InputCount]
    lake_rows: dict[str, int]
    checksums: dict[str, tuple[int, int]]
    """Dataset -> checksum of the input, checksum of the lake."""
    quarantined: dict[str, int]
    """Input URI -> rejected lines in the quarantine."""
    whole_files: dict[str, str]
    """Input URI -> reason, for files quarantined as a whole."""
    differences: list[str] = field(default_factory=list)


def count_input(path: Path, uri: str, dataset: str) -> tuple[InputCount, int]:
    """Counts of an input file, and the sum of its rows' checksums."""
    count = InputCount(uri, dataset)
    total = 0
    try:
        for number, line in enumerate(_lines(path)):
            body = line.removesuffix(b"\n")
            if number == 0:
                body = body.removeprefix(b"\xef\xbb\xbf")
            count.lines += 1
            if not body.strip(b" \t\r"):
                count.blank += 1
                continue
            pairs = None if len(body) > MAX_LINE_BYTES else pairs_of(body)
            if pairs is None:
                count.invalid += 1
            else:
                count.rows += 1
                total += row_checksum(pairs)
    except (OSError, EOFError, ValueError) as error:
        count.unreadable = str(error) or type(error).__name__
    return count, total % MODULUS


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as probe:
        magic = probe.read(4)
    if magic[:2] == b"\x1f\x8b":
        with gzip.open(path, "rb") as inflated:
            yield from inflated
    elif magic[:3] == b"BZh":
        with bz2.open(path, "rb") as inflated:
            yield from inflated
    elif magic == b"\x28\xb5\x2f\xfd":
        with io.BufferedReader(pa.input_stream(path, compression="zstd")) as inflated:  # type: ignore[type-var]
            yield from inflated
    else:
        with path.open("rb") as plain:
            yield from plain


def count_lake(folder: Path) -> tuple[int, int]:
    """Rows and the sum of their checksums in all Parquet files under a dataset's folder."""
    rows = total = 0
    for path in sorted(folder.rglob("*.parquet")):
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            keys = [_original_key(schema.field(index)) for index in range(len(schema))]
            for batch in file.iter_batches(batch_size=4096):
                columns = [column.to_pylist() for column in batch.columns]
                rows += batch.num_rows
                for values in zip(*columns, strict=True):
                    total += row_checksum(_lake_pairs(keys, values))
    return rows, total % MODULUS


def _original_key(item: Any) -> str:
    metadata = item.metadata or {}
    return metadata[b"original_key"].decode() if b"original_key" in metadata else f"\0{item.name}"


def _lake_pairs(keys: list[str], values: tuple[str | None, ...]) -> list[tuple[str, str]]:
    pairs = []
    for key, value in zip(keys, values, strict=True):
        if value is None:
            continue
        if key == "\0_rescued":
            pairs += pairs_of(value.encode()) or [("\0broken _rescued", value)]
        else:
            pairs.append((key, value))
    return pairs


def count_quarantine(folder: Path) -> tuple[Counter[str], dict[str, str]]:
    """Rejected lines by input URI, and files quarantined as a whole with their reason."""
    lines: Counter[str] = Counter()
    whole: dict[str, str] = {}
    for path in sorted(folder.rglob("*.jsonl")):
        for text in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(text)
            if record["kind"] == "file":
                whole[record["source"]] = record["reason"]
            else:
                lines[record["source"]] += record.get("count", 1)
    return lines, whole


def prove(inputs: Iterable[tuple[Path, str, str]], output: Path) -> Proof:
    """Compare every input, given as (path, URI, dataset), with ``output/lake`` and ``output/quarantine``."""
    quarantined, whole = count_quarantine(output / "quarantine")
    counts: dict[str, InputCount] = {}
    expected: dict[str, int] = defaultdict(int)
    expected_rows: dict[str, int] = defaultdict(int)
    proof = Proof(counts, {}, {}, dict(quarantined), whole)
    for path, uri, dataset in inputs:
        count, total = count_input(path, uri, dataset)
        counts[uri] = count
        expected[dataset] += 0
        if uri in whole:
            continue
        if count.unreadable:
            proof.differences.append(f"{uri}: cannot be read ({count.unreadable}), but it is not in the quarantine")
        expected[dataset] = (expected[dataset] + total) % MODULUS
        expected_rows[dataset] += count.rows
        if count.invalid != quarantined[uri]:
            proof.differences.append(
                f"{uri}: {format_count(count.invalid, 'invalid line')}, but {quarantined[uri]} in the quarantine"
            )
    for dataset, checksum in sorted(expected.items()):
        rows, actual = count_lake(output / "lake" / dataset)
        proof.lake_rows[dataset] = rows
        proof.checksums[dataset] = (checksum, actual)
        if rows != expected_rows[dataset]:
            proof.differences.append(
                f"{dataset}: {format_count(expected_rows[dataset], 'row')} in the input, {rows} in the lake"
            )
        if checksum != actual:
            proof.differences.append(f"{dataset}: the values in the lake differ from those of the input")
    for uri in sorted((set(quarantined) | set(whole)) - set(counts)):
        proof.differences.append(f"{uri}: in the quarantine, but not an input")
    return proof


def row_checksum(pairs: Iterable[tuple[str, str]]) -> int:
    """128 bits over the row's members in sorted order; checksums are added, so the order of rows does not matter."""
    digest = hashlib.blake2b(digest_size=16)
    for key, value in sorted(pairs):
        for text in (key, value):
            data = text.encode("utf-8")
            digest.update(len(data).to_bytes(8, "little"))
            digest.update(data)
    return int.from_bytes(digest.digest(), "little")
