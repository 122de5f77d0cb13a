"""The benchmark's input: seeded NDJSON files on the local disk, generated once for each size and seed."""

import gzip
import json
import os
import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from random import Random

from bench.shapes import SHAPES

FORMAT_VERSION = 2
"""Part of the cache's key: increase it with every change of a shape."""
CHUNK_BYTES = 8_000_000
"""Rows are generated in chunks of about this size."""
GZIP_LEVEL = 6
"""The default of the gzip command."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Parameters that determine every byte of the files."""

    shape: str
    files: int
    file_bytes: int
    """Approximate bytes of NDJSON in each file."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class InputFiles:
    """Files of one shape in their own folder."""

    shape: str
    folder: str
    names: tuple[str, ...]
    rows: int
    bytes: int
    """Size of the NDJSON, after decompression."""
    keys: tuple[str, ...]

    @property
    def paths(self) -> list[Path]:
        return [Path(self.folder, name) for name in self.names]

    @property
    def location(self) -> str:
        """The path for a reader of folders: the folder, or the file if there is only one."""
        return self.folder if len(self.names) > 1 else str(self.paths[0])

    def first_files(self, count: int) -> "InputFiles":
        """The first ``count`` files, linked into their own folder; ``rows`` and ``bytes`` still count all files."""
        folder = Path(f"{self.folder}-first-{count}")
        folder.mkdir(exist_ok=True)
        for path in self.paths[:count]:
            link = folder / path.name
            link.unlink(missing_ok=True)
            os.link(path, link)
        return replace(self, folder=str(folder), names=self.names[:count])


def generate(recipe: Recipe, number: int) -> bytes:
    """Return the NDJSON of file ``number``, which depends only on the arguments."""
    shape = SHAPES[recipe.shape]
    count = max(1, round(recipe.file_bytes / shape.row_bytes))
    step = max(1, CHUNK_BYTES // shape.row_bytes)
    rows: list[str] = []
    for first in range(0, count, step):
        random = Random(f"{recipe.shape} {recipe.seed} {number} {first}")
        position = (number + first / count) / recipe.files
        rows += shape.rows(random, min(step, count - first), position)
    return ("\n".join(rows) + "\n").encode()


def prepare(recipe: Recipe, cache: Path, workers: int) -> InputFiles:
    """Return the files of a recipe in the folder ``cache``; ``workers`` processes generate missing files."""
    folder = cache / f"{recipe.shape}-{recipe.seed}-{recipe.files}x{recipe.file_bytes}-v{FORMAT_VERSION}"
    counts_file = folder.with_suffix(".json")
    if not counts_file.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with ProcessPoolExecutor(workers) as pool:
            written = pool.map(_write, repeat(recipe), range(recipe.files), repeat(folder))
            names, rows, sizes = zip(*written, strict=True)
        # Written last: while this file is missing, the next call generates the folder again.
        counts_file.write_text(json.dumps({"names": names, "rows": sum(rows), "bytes": sum(sizes)}))
    counts = json.loads(counts_file.read_text())
    return InputFiles(recipe.shape, str(folder), tuple(counts.pop("names")), **counts, keys=SHAPES[recipe.shape].keys)


def _write(recipe: Recipe, number: int, folder: Path) -> tuple[str, int, int]:
    text = generate(recipe, number)
    compressed = recipe.shape == "gzip"
    path = folder / f"{number:05d}.ndjson{'.gz' if compressed else ''}"
    path.write_bytes(gzip.compress(text, GZIP_LEVEL, mtime=0) if compressed else text)
    return path.name, text.count(b"\n"), len(text)
