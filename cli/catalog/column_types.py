"""Which type the text of a column can be cast to. Pure.

A type accepts a value only if a pattern matches all of it, so that the casts of Athena, DuckDB and Spark, which differ
in what they round, trim and cut, agree: what is accepted keeps its digits (DOUBLE: as many as it has).
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from itertools import islice
from typing import NoReturn

from lake.settings.declaration import is_date

MAX_DIGITS = 38
"""Maximum precision of a DECIMAL in Athena, DuckDB and Spark."""
MAX_SCALE = 28
"""Digits after the point that a proposed DECIMAL has at most, so that 10 are left before it."""
MAX_FRACTION_DIGITS = 6
"""Fractional digits of a second that TIMESTAMP has in DuckDB and Spark."""
MAX_REFUSED_PERCENT = 10
"""A type is proposed if it refuses at most this part of the values of the sample."""
MAX_EXAMPLES = 3
MAX_CHARACTERS = 100
"""No number or time that a type takes is longer; of JSON only the parser reads more."""

_DATE = "(?:1[6-9]|2[0-9])[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_TIME = "[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_ZONE = "(?:Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9])"
_PLAIN_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(?:[.]([0-9]+))?")
_SECOND = re.compile(r"[^.]*:[0-9]{2}(?:[.]([0-9]+))?(?:Z|[+-][0-9:]{2,6})?")


class TypeKind(StrEnum):
    """Kinds of types. Of kinds that accept the same number of values the first is proposed."""

    BOOLEAN = "BOOLEAN"
    BIGINT = "BIGINT"
    DECIMAL = "DECIMAL"
    DOUBLE = "DOUBLE"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    """Without an offset: what a clock showed."""
    INSTANT = "INSTANT"
    """A TIMESTAMP with an offset: a point in time."""
    JSON = "JSON"


FORMATS = {
    TypeKind.DATE: "YYYY-MM-DD",
    TypeKind.TIMESTAMP: "YYYY-MM-DDTHH:MM:SS, or with a space, without an offset",
    TypeKind.INSTANT: "YYYY-MM-DDTHH:MM:SS, or with a space, with Z or +HH:MM; in UTC",
    TypeKind.JSON: "an object or an array",
}


@dataclass(frozen=True)
class ColumnType:
    kind: TypeKind
    scale: int = 0
    """DECIMAL: digits after the point. TIMESTAMP and INSTANT: digits of the fraction of a second."""

    @cached_property
    def pattern(self) -> str:
        """A regular expression for the whole value, of the syntax that RE2, Java and Python share; empty for JSON."""
        fraction = f"(?:[.][0-9]{{1,{self.scale}}})?" if self.scale else ""
        return {
            TypeKind.BOOLEAN: "true|false",
            TypeKind.BIGINT: "0|-?[1-9][0-9]{0,18}",
            TypeKind.DECIMAL: f"-?(?:0|[1-9][0-9]{{0,{MAX_DIGITS - self.scale - 1}}}){fraction}",
            TypeKind.DOUBLE: "-?(?:0|[1-9][0-9]*)(?:[.][0-9]+)?(?:[eE][+-]?[0-9]+)?",
            TypeKind.DATE: _DATE,
            TypeKind.TIMESTAMP: f"{_DATE}{_TIME}{fraction}",
            TypeKind.INSTANT: f"{_DATE}{_TIME}{fraction}{_ZONE}",
            TypeKind.JSON: "",
        }[self.kind]

    @property
    def name(self) -> str:
        if self.kind is TypeKind.DECIMAL:
            return f"DECIMAL({MAX_DIGITS}, {self.scale})"
        return TypeKind.TIMESTAMP.value if self.kind is TypeKind.INSTANT else self.kind.value

    def accepts(self, text: str) -> bool:
        """Whether the cast of the views gives a value; it gives NULL for what is not accepted."""
        if self.kind is TypeKind.JSON:
            return _is_json(text)
        if len(text) > MAX_CHARACTERS or re.fullmatch(self.pattern, text) is None:
            return False
        if self.kind is TypeKind.BIGINT:
            return -(2**63) <= int(text) < 2**63
        if self.kind is TypeKind.DOUBLE:
            return math.isfinite(float(text))
        return self.kind not in (TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.INSTANT) or is_date(text[:10])


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a column of a sample can be cast to."""

    type: ColumnType | None
    """None: it stays VARCHAR."""
    values: int
    """Number of values in the sample, without NULL."""
    refused: int
    examples: tuple[str, ...] = ()


def propose(counts: Mapping[str, int]) -> Proposal:
    """The type that accepts most values of a sample. ``counts``: how often each value occurs, without NULL."""
    values = sum(counts.values())
    best, refused = None, values
    for candidate in _candidates(counts):
        number = _count_refused(candidate, counts, min(refused - 1, values * MAX_REFUSED_PERCENT // 100))
        if number is not None:
            best, refused = candidate, number
        if refused == 0:
            break
    if best is None:
        return Proposal(None, values, 0)
    examples = (text for text in counts if not best.accepts(text))
    return Proposal(best, values, refused, tuple(islice(examples, MAX_EXAMPLES)))


def _count_refused(candidate: ColumnType, counts: Mapping[str, int], limit: int) -> int | None:
    """How many values the type refuses; None: more than ``limit``, or there are no values."""
    refused = 0
    for text, count in counts.items():
        if not candidate.accepts(text):
            refused += count
        if refused > limit:
            return None
    return refused if counts else None


def _candidates(texts: Mapping[str, int]) -> Iterator[ColumnType]:
    short = [text for text in texts if len(text) <= MAX_CHARACTERS]
    numbers = [match for text in short if (match := _PLAIN_NUMBER.fullmatch(text))]
    scale = min(MAX_SCALE, max((len(match[2] or "") for match in numbers), default=0))
    seconds = [match for text in short if (match := _SECOND.fullmatch(text))]
    fraction = min(MAX_FRACTION_DIGITS, max((len(match[1] or "") for match in seconds), default=0))
    for kind in TypeKind:
        if kind is TypeKind.DECIMAL:
            if any(_has_digits_that_matter(match) for match in numbers):
                yield ColumnType(kind, scale)
        elif kind in (TypeKind.TIMESTAMP, TypeKind.INSTANT):
            yield ColumnType(kind, fraction)
        else:
            yield ColumnType(kind)


def _has_digits_that_matter(number: re.Match[str]) -> bool:
    """Whether a DOUBLE would change the number, or it was written with a fixed number of digits, as money is."""
    text, fraction = number[0], number[2] or ""
    if not fraction:
        return not ColumnType(TypeKind.BIGINT).accepts(text) and text != "-0"
    return (len(fraction) > 1 and fraction.endswith("0")) or Decimal(repr(float(text))) != Decimal(text)


def _is_json(text: str) -> bool:
    if not text.startswith(("{", "[")):
        return False
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
