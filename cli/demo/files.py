"""Which files the demo sends, under which keys, and which case of the product each of them shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from lake.errors import InvalidInputError
from lake.settings import InputSettings

if TYPE_CHECKING:
    from pathlib import Path

INPUT = InputSettings()
"""The demo deploys with the default suffixes."""


class DemoCase(StrEnum):
    """How a demo file reaches the lake: URGENT and PEAK by the stream lane, the others by the batch lane."""

    URGENT = "urgent"
    PEAK = "peak"
    OVERNIGHT = "overnight"
    BACKFILL = "backfill"


@dataclass(frozen=True, slots=True)
class DemoFile:
    """A file of the demo."""

    path: Path
    dataset: str
    key: str
    case: DemoCase
    duplicate_event: bool = False

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return self.path.stat().st_size


def user_files(data: Path) -> tuple[list[DemoFile], list[Path]]:
    """The user's own files, each one a dataset, and the files that are skipped because of their suffix.

    The first file is urgent, the second waits for the overnight run, the third for a backfill, and so on in turn.

    Raises
    ------
    InvalidInputError
        ``data`` does not exist, or holds no file with an NDJSON suffix.
    """
    if not data.exists():
        raise InvalidInputError(f"{data} does not exist: give DATA a file or a folder that holds NDJSON files")
    found = sorted(path for path in data.rglob("*") if path.is_file()) if data.is_dir() else [data]
    taken = [path for path in found if INPUT.suffix_of(path.name)]
    if not taken:
        raise InvalidInputError(
            f"{data} holds no file that ends in {', '.join(INPUT.suffixes)}: name a folder or a file that does"
        )
    files: list[DemoFile] = []
    names: set[str] = set()
    for index, path in enumerate(taken):
        case = (DemoCase.URGENT, DemoCase.OVERNIGHT, DemoCase.BACKFILL)[index % 3]
        dataset = _dataset_name(path, names)
        names.add(dataset)
        folder = f"{dataset}/urgent/" if case == DemoCase.URGENT else f"{dataset}/"
        files.append(DemoFile(path, dataset, folder + path.name, case))
    return files, [path for path in found if path not in set(taken)]


def _dataset_name(path: Path, taken: set[str]) -> str:
    stem = path.name[: -len(INPUT.suffix_of(path.name) or "")]
    base = re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")[:50] or "data"
    if not base[0].isalpha():
        base = f"d_{base}"
    name = base
    number = 2
    while name in taken:
        name = f"{base}_{number}"
        number += 1
    return name
