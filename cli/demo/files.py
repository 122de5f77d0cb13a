"""Which files the demo sends, under which keys, and which case of the product each of them shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lake.dataset_rules import format_taken, matching_rule, reason_without_dataset
from lake.errors import InvalidInputError
from lake.settings import DatasetRule, InputSettings

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


def user_files(data: Path, rules: Sequence[DatasetRule]) -> tuple[list[DemoFile], dict[Path, str]]:
    """The user's own files under their own keys, and why the others are skipped.

    The first file is urgent, the second waits for the overnight run, the third for a backfill, and so on in turn. The
    key of a file is its path below ``data``; one without a folder gets that of ``data``, and an urgent one the folder
    ``urgent/``.
    """
    if not data.exists():
        raise InvalidInputError(f"{data} does not exist: give DATA a file or a folder that holds NDJSON files")
    base = (data if data.is_dir() else data.parent).resolve()
    found = sorted(path for path in data.rglob("*") if path.is_file()) if data.is_dir() else [data]
    files: list[DemoFile] = []
    skipped: dict[Path, str] = {}
    folders: dict[str, str] = {}
    for path in found:
        below = path.relative_to(data).as_posix() if data.is_dir() else path.name
        key = below if "/" in below else f"{base.name}/{below}"
        _, dataset = matching_rule(key, rules)
        folder, _, name = key.partition("/")
        reason = reason_without_dataset(key, rules)
        if not INPUT.suffix_of(path.name):
            reason = "not an NDJSON suffix"
        elif reason is None and (owner := folders.setdefault(dataset, folder)) != folder:
            reason = format_taken(folder, dataset, f"which the folder {owner!r} has", f"{folder}/")
        if reason is not None:
            skipped[path] = reason
            continue
        case = (DemoCase.URGENT, DemoCase.OVERNIGHT, DemoCase.BACKFILL)[len(files) % 3]
        files.append(DemoFile(path, dataset, f"{folder}/urgent/{name}" if case == DemoCase.URGENT else key, case))
    if not files:
        raise InvalidInputError(
            f"{data} holds no file that ends in {', '.join(INPUT.suffixes)}: name a folder or a file that does"
        )
    return files, skipped
