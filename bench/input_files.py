"""Seeded files on the local disk, made once per size and seed."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from bench.shapes import SHAPES

FORMAT = 1
"""Part of the cache's key: to be raised whenever a shape changes."""
ROWS_AT_ONCE_BYTES = 8_000_000
LEVEL = 6
"""gzip's own default."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What determines every byte."""

    shape: str
    files: int
    file_bytes: int
    """About so many bytes of NDJSON in each file."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Data:
    """Files of one shape in a folder of their own."""

    shape: str
    folder: str
    names: tuple[str, ...]
    rows: int
    bytes: int
    """NDJSON bytes, inflated."""
    stored_bytes: int
    keys: tuple[str, ...]
    """Every top-level key that can occur."""

    @property
    def paths(self) -> list[Path]:
        """The files, in order."""
        return [Path(self.folder, name) for name in self.names]

    @property
    def location(self) -> str:
        """What a reader of folders is given: the folder, or the file if there is only one."""
        return self.folder if len(self.names) > 1 else str(self.paths[0])

    def first(self, count: int) -> Data:
        """The first files alone, in a folder of their own; ``rows`` and ``bytes`` stay those of all files."""
        folder = Path(f"{self.folder}-first-{count}")
        folder.mkdir(exist_ok=True)
        for path in self.paths[:count]:
            link = folder / path.name
            link.unlink(missing_ok=True)
            os.link(path, link)
        return replace(self, folder=str(folder), names=self.names[:count])


def generate(recipe: Recipe, number: int) -> bytes:
    """The NDJSON of one file; a function of its arguments alone."""
    shape = SHAPES[recipe.shape]
    count = max(1, round(recipe.file_bytes / shape.row_bytes))
    step = max(1, ROWS_AT_ONCE_BYTES // shape.row_bytes)
    parts: list[str] = []
    for first in range(0, count, step):
        chance = Random(f"{recipe.shape} {recipe.seed} {number} {first}")
        place = (number + first / count) / recipe.files
        parts += shape.rows(chance, min(step, count - first), place)
    return ("\n".join(parts) + "\n").encode()


def prepare(recipe: Recipe, cache: Path, workers: int) -> Data:
    """The files, from the cache if they were made before."""
    name = f"{recipe.shape}-{recipe.seed}-{recipe.files}x{recipe.file_bytes}-v{FORMAT}"
    counts = cache / f"{name}.json"
    if not counts.exists():
        _make(recipe, cache / name, counts, workers)
    known = json.loads(counts.read_text())
    return Data(recipe.shape, str(cache / name), tuple(known.pop("names")), **known, keys=SHAPES[recipe.shape].keys)


def _make(recipe: Recipe, folder: Path, counts: Path, workers: int) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    with ProcessPoolExecutor(workers) as pool:
        jobs = [pool.submit(_write, recipe, number, folder) for number in range(recipe.files)]
        names, rows, sizes, stored = zip(*(job.result() for job in jobs), strict=True)
    # Written last: without it the folder is made again.
    counts.write_text(json.dumps({"names": names, "rows": sum(rows), "bytes": sum(sizes), "stored_bytes": sum(stored)}))


def _write(recipe: Recipe, number: int, folder: Path) -> tuple[str, int, int, int]:
    text = generate(recipe, number)
    compressed = recipe.shape == "gzip"
    path = folder / f"{number:05d}.ndjson{'.gz' if compressed else ''}"
    path.write_bytes(gzip.compress(text, LEVEL, mtime=0) if compressed else text)
    return path.name, text.count(b"\n"), len(text), path.stat().st_size
