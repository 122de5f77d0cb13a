"""Files to manifests of bounded size. Pure."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from lake.ledger import Part
from lake.manifest import Lane, Manifest, ObjectVersion, Partition
from lake.manifest_documents import decode_files
from lake.settings import BatchSettings

T = TypeVar("T")

TEXTS_AT_ONCE = 100
"""Parts whose files of one dataset are decoded at a time."""


def cut(items: Iterable[T], size: Callable[[T], int], max_bytes: int, max_files: int) -> Iterator[tuple[T, ...]]:
    """The items in order, in pieces within both limits; one that is larger has a piece of its own.

    ``size`` gives the bytes of an item.
    """
    piece: list[T] = []
    total = 0
    for item in items:
        if piece and (total + size(item) > max_bytes or len(piece) == max_files):
            yield tuple(piece)
            piece, total = [], 0
        piece.append(item)
        total += size(item)
    if piece:
        yield tuple(piece)


class CollectedFiles:
    """The files of one dataset, part by part, as the documents of the parts have them."""

    def __init__(self) -> None:
        self._parts = array("I")
        self._texts: list[str] = []

    def add(self, part: int, text: str) -> None:
        """Add the text of a part's document; ``part`` is the number of the part, in the order of the parts."""
        self._parts.append(part)
        self._texts.append(text)

    def files(self) -> "Iterator[CollectedFile]":
        """Each file; those of ``TEXTS_AT_ONCE`` are decoded at a time."""
        for first in range(0, len(self._texts), TEXTS_AT_ONCE):
            some = slice(first, first + TEXTS_AT_ONCE)
            for part, files in zip(self._parts[some], decode_files(self._texts[some]), strict=True):
                for file in files:
                    yield CollectedFile(part, file)


class CollectedFile(NamedTuple):
    part: int
    file: ObjectVersion


class CutManifest(NamedTuple):
    """A manifest, and the numbers of the first and the last part with files of it."""

    manifest: Manifest
    first_part: int
    last_part: int


def cut_collection(
    parts: Sequence[Part],
    datasets: dict[str, CollectedFiles],
    limits: BatchSettings,
    new_id: Callable[[], str],
) -> Iterator[CutManifest]:
    """The manifests of some parts of one hour, the oldest first, whose files are given by dataset.

    A manifest is as old as the oldest of its parts, so that nothing hides how long a file has been waiting. Only the
    files of one manifest are decoded at a time; ``datasets`` is emptied.
    """
    for dataset in sorted(datasets):
        found = datasets.pop(dataset).files()
        for piece in cut(found, lambda item: item.file.size, limits.manifest_bytes, limits.manifest_files):
            first, last = piece[0].part, piece[-1].part
            oldest = parts[first]
            manifest = Manifest(
                new_id(),
                Lane.BATCH,
                Partition.parse(f"{dataset}#{oldest.hour}"),
                oldest.created_at,
                tuple(sorted(item.file for item in piece)),
            )
            yield CutManifest(manifest, first, last)
