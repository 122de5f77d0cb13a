"""Files to manifests of bounded size. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from lake.manifest import Lane, Manifest, ObjectVersion
from lake.partition import Partition

if TYPE_CHECKING:
    from lake.ledger import Part
    from lake.settings import BatchSettings

T = TypeVar("T")


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


class CollectedFile(NamedTuple):
    """A file with the number of its part, in the order of the parts."""

    part: int
    file: ObjectVersion


class CutManifest(NamedTuple):
    """A manifest, and the numbers of the first and the last part with files of it."""

    manifest: Manifest
    first_part: int
    last_part: int


def cut_collection(
    parts: Sequence[tuple[Part, Mapping[str, Sequence[ObjectVersion]]]],
    limits: BatchSettings,
    new_id: Callable[[], str],
) -> Iterator[CutManifest]:
    """The manifests of some parts of one hour, the oldest first, given with their files by dataset.

    A manifest is as old as the oldest of its parts, so that nothing hides how long a file has been waiting.
    """
    datasets: defaultdict[str, list[CollectedFile]] = defaultdict(list)
    for number, (_, files) in enumerate(parts):
        for dataset, listed in files.items():
            datasets[dataset] += [CollectedFile(number, file) for file in listed]
    for dataset in sorted(datasets):
        found = datasets.pop(dataset)
        for piece in cut(found, lambda item: item.file.size, limits.manifest_bytes, limits.manifest_files):
            first, last = piece[0].part, piece[-1].part
            oldest = parts[first][0]
            manifest = Manifest(
                new_id(),
                Lane.BATCH,
                Partition.parse(f"{dataset}#{oldest.hour}"),
                oldest.created_at,
                tuple(sorted(item.file for item in piece)),
            )
            yield CutManifest(manifest, first, last)
