"""Input files of a history, with what has to become of each of their lines."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

VALUES = ("1.10", "1E400", "true", '"a\\u00e9"', "[1, 2 ]", '{"b" : 1.0}', "-0", '""')
SPOKEN = {'"a\\u00e9"': "aé", '""': ""}


@dataclass(frozen=True, slots=True)
class Input:
    """One object version."""

    key: str
    version: str
    """Version id, or ``etag:`` and the ETag."""
    size: int
    rows: tuple[str, ...]
    """JSON text of each row that has to be in the lake, keys sorted."""
    rejects: tuple[str, ...]
    """Text of each line that has to be in the quarantine."""
    readable: bool = True
    """False: the file as a whole goes to the quarantine, by reference."""

    def lost(self) -> Input:
        """The same version, gone before it was read."""
        return replace(self, rows=(), rejects=(), readable=False)


@dataclass(frozen=True, slots=True)
class Body:
    """Bytes to put, and what they hold."""

    data: bytes
    rows: tuple[str, ...]
    rejects: tuple[str, ...]
    readable: bool = True


def body(random: Random, name: str, *, truncated: bool = False) -> Body:
    """A few lines, each with a text of its own; ``truncated``: a gzip without its end."""
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
            row = {"id": token, column: SPOKEN.get(value, value)}
            rows.append(json.dumps(row, sort_keys=True))
    if not rows:
        lines.append(f'{{"id":"{name}-last"}}')
        rows.append(json.dumps({"id": f"{name}-last"}))
    data = "\n".join(lines).encode() + random.choice([b"\n", b""])
    if truncated:
        packed = gzip.compress(data + random.randbytes(400).hex().encode())
        return Body(packed[: len(packed) // 2], (), (), readable=False)
    if random.random() < 0.15:
        return Body(gzip.compress(data), tuple(rows), tuple(rejects))
    return Body(data, tuple(rows), tuple(rejects))
