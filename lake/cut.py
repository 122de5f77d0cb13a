"""Cuts a sequence into pieces of a limited size."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def cut(
    items: Iterable[T], size: Callable[[T], tuple[float, int]], limit: tuple[float, int]
) -> Iterator[tuple[T, ...]]:
    """Cut items, in order, into pieces within both limits; an item that is too large gets a piece of its own. Pure.

    ``size`` returns both sizes of an item, such as its bytes and its number of files.
    """
    piece: list[T] = []
    total = number = 0.0
    for item in items:
        more, files = size(item)
        if piece and (total + more > limit[0] or number + files > limit[1]):
            yield tuple(piece)
            piece, total, number = [], 0.0, 0.0
        piece.append(item)
        total, number = total + more, number + files
    if piece:
        yield tuple(piece)
