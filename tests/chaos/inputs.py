"""Settings of a history at random, and its input files with the expected outcome of each line."""

import gzip
import json
from dataclasses import dataclass
from random import Random

from lake.settings import (
    BatchSettings,
    ConvertSettings,
    DatasetRule,
    PeakSettings,
    Settings,
    StreamSettings,
    SweepSettings,
    TablesSettings,
)

WITH_TABLE = "clicks"
DATASETS = ("orders", WITH_TABLE)


def random_settings(random: Random) -> Settings:
    """Small limits, so that a few lines make several splits, tasks, manifests and runs."""
    return Settings(
        "chaos",
        datasets=(DatasetRule("orders", "orders/"), DatasetRule(WITH_TABLE, f"{WITH_TABLE}/", table="iceberg")),
        tables=TablesSettings(keep_hours=1),
        peak=PeakSettings(hours=()),
        stream=StreamSettings(manifest_files=random.randint(1, 3)),
        batch=BatchSettings(manifest_files=random.randint(2, 6), max_attempts=random.randint(1, 3), engines=("glue",)),
        convert=ConvertSettings(
            split_bytes=random.choice([64, 300, 1 << 20]), target_file_bytes=random.choice([64, 500, 1 << 20])
        ),
        sweep=SweepSettings(listing_hours=0),
    )


VALUES = ("1.10", "1E400", "true", '"a\\u00e9"', "[1, 2 ]", '{"b" : 1.0}', "-0", '""')
UNESCAPED = {'"a\\u00e9"': "aé", '""': ""}
"""The value in the lake, if it is not the JSON text itself."""


@dataclass(frozen=True, slots=True)
class Body:
    """Bytes of one file, and the expected outcome of its lines."""

    data: bytes
    rows: tuple[str, ...] = ()
    """JSON text of each expected row of the lake, keys sorted."""
    rejects: tuple[str, ...] = ()
    """Text of each expected line of the quarantine."""
    readable: bool = True
    """False: the whole file goes to the quarantine, by reference."""


UNREADABLE = Body(b"", readable=False)


@dataclass(frozen=True, slots=True)
class Input:
    key: str
    version: str
    """Version id, or ``etag:`` and the ETag."""
    body: Body


def random_body(random: Random, name: str, *, truncated: bool = False) -> Body:
    """A few lines, each with a unique text; ``truncated``: a gzip stream cut in half."""
    lines, rows, rejects = [], [], []
    for number in range(random.randint(1, 12)):
        token, kind = f"{name}-{number}", random.random()
        if kind < 0.12 and number:
            rejects.append(f'{{"id":"{token}" broken')
            lines.append(rejects[-1])
        elif kind < 0.18:
            lines.append(" ")
        else:
            value = random.choice(VALUES)
            column = random.choice("vwx")
            lines.append(f'{{"id":"{token}","{column}":{value}}}')
            row = {"id": token, column: UNESCAPED.get(value, value)}
            rows.append(json.dumps(row, sort_keys=True))
    if not rows:
        lines.append(f'{{"id":"{name}-last"}}')
        rows.append(json.dumps({"id": f"{name}-last"}))
    data = "\n".join(lines).encode() + random.choice([b"\n", b""])
    if truncated:
        compressed = gzip.compress(data + random.randbytes(400).hex().encode())
        return Body(compressed[: len(compressed) // 2], readable=False)
    if random.random() < 0.15:
        return Body(gzip.compress(data), tuple(rows), tuple(rejects))
    return Body(data, tuple(rows), tuple(rejects))
