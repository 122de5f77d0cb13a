"""Shapes of NDJSON: seeded rows with the same bytes on every machine.

Rows are generated column by column and formatted by one template, so that a gigabyte takes seconds. Every row gets new
random values: a row group holds no more repetition than real data of this kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from random import Random

SYLLABLES = ("ka", "lo", "mi", "ren", "tas", "vel", "no", "sur", "pi", "dan", "he", "gra", "ol", "wy", "bo", "chi")
WORDS = tuple(
    first + second + third for first in SYLLABLES for second in SYLLABLES for third in ("", "s", "er", "ung", "é")
)
COUNTRIES = ("DE", "US", "FR", "IN", "BR", "JP", "NG", "MX", "PL", "ID")
KINDS = ("view", "click", "purchase", "login", "logout", "search", "share")
BOOLEANS = ("true", "false")
SPARSE_KEYS = 500
SPARSE_KEYS_PER_ROW = 20
SPARSE_WINDOW = 100
"""Keys in use at one position in the data; the window moves through all keys from the first row to the last."""
WIDE_COLUMNS = 1000


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of data."""

    name: str
    description: str
    """For the report."""
    rows: Callable[[Random, int, float], Sequence[str]]
    """Called with the number of rows; returns them without newline. The float is their position in the data, 0 to 1."""
    keys: tuple[str, ...]
    """Every top-level key that can occur."""
    row_bytes: int
    """Expected size of a row, newline included."""


def integers(random: Random, count: int, bits: int = 32) -> list[int]:
    """Evenly distributed below two to the power of ``bits``."""
    return [random.getrandbits(bits) for _ in range(count)]


def decimals(random: Random, count: int) -> list[str]:
    """Prices with two decimal places; many end in a zero, which a number type would lose."""
    return [f"{number // 100}.{number % 100:02d}" for number in integers(random, count, 20)]


def tokens(random: Random, count: int, length: int) -> Iterator[str]:
    """Hexadecimal identifiers of ``length`` digits."""
    digits = random.randbytes(count * length // 2).hex()
    return (digits[start : start + length] for start in range(0, count * length, length))


def sentences(random: Random, count: int, words: int) -> Iterator[str]:
    """Text of a few words."""
    drawn = random.choices(WORDS, k=count * words)
    return (" ".join(drawn[start : start + words]) for start in range(0, count * words, words))


def timestamps(random: Random, count: int) -> list[str]:
    """Timestamps within one day."""
    return [
        f"2026-03-17T{n // 3600 % 24:02d}:{n // 60 % 60:02d}:{n % 60:02d}.{n % 997:03d}Z"
        for n in integers(random, count, 30)
    ]


def _template(members: Sequence[tuple[str, str]]) -> str:
    return "{" + ",".join(f'"{key}":{form}' for key, form in members) + "}"


FLAT = (
    ("event_id", '"%s"'),
    ("user_id", "%d"),
    ("session", '"%s"'),
    ("event_type", '"%s"'),
    ("occurred_at", '"%s"'),
    ("received_at", '"%s"'),
    ("country", '"%s"'),
    ("device", '"%s"'),
    ("price", "%s"),
    ("tax", "%s"),
    ("quantity", "%d"),
    ("is_new", "%s"),
    ("referrer", '"https://www.%s.example/%s"'),
    ("campaign", "%s"),
    ("title", '"%s"'),
    ("comment", '"%s"'),
)


def _flat_columns(random: Random, count: int) -> list[Iterator[str] | list[str] | list[int]]:
    return [
        tokens(random, count, 32),
        integers(random, count, 33),
        tokens(random, count, 16),
        random.choices(KINDS, k=count),
        timestamps(random, count),
        timestamps(random, count),
        random.choices(COUNTRIES, k=count),
        sentences(random, count, 2),
        decimals(random, count),
        decimals(random, count),
        integers(random, count, 4),
        random.choices(BOOLEANS, k=count),
        random.choices(WORDS, k=count),
        tokens(random, count, 12),
        random.choices(("null", '"spring"', '"summer"'), k=count),
        sentences(random, count, 4),
        sentences(random, count, 7),
    ]


def flat(random: Random, count: int, _: float) -> list[str]:
    """16 scalar members."""
    return list(map(_template(FLAT).__mod__, zip(*_flat_columns(random, count), strict=True)))


def random_order(random: Random, count: int, _: float) -> list[str]:
    """The members of ``flat``, in a different order in every row."""
    members = "\n".join(f'"{key}":{form}' for key, form in FLAT)
    rows = []
    for values in zip(*_flat_columns(random, count), strict=True):
        row = (members % values).split("\n")
        random.shuffle(row)
        rows.append("{" + ",".join(row) + "}")
    return rows


def _nested_members() -> list[tuple[str, str]]:
    members: list[tuple[str, str]] = []
    for number in range(6):
        members += [
            (f"id{number}", "%d"),
            (f"text{number}", '"%s"'),
            (f"user{number}", '{"id":%d,"name":"%s","verified":%s,"scores":[%s, %s]}'),
            (f"createdAt{number}", '"%s"'),
            (f"entity{number}", '{"urls":[{"url":"https://t.example/%s","indices":[%d,%d]}],"tags":["%s"]}'),
            (f"amount{number}", "%s"),
            (f"flag{number}", "%s"),
        ]
    return [*members, ("lang", '"%s"'), ("note", '"%s"'), ("place", "null"), ("geo", '{"type":"Point","at":[%s,%s]}')]


def nested(random: Random, count: int, _: float) -> list[str]:
    """46 members, 13 of them objects with arrays and objects inside."""
    columns: list[Iterator[str] | list[str] | list[int]] = []
    for _number in range(6):
        columns += [
            integers(random, count, 53),
            sentences(random, count, 4),
            integers(random, count, 40),
            sentences(random, count, 2),
            random.choices(BOOLEANS, k=count),
            decimals(random, count),
            decimals(random, count),
            timestamps(random, count),
            tokens(random, count, 10),
            integers(random, count, 7),
            integers(random, count, 7),
            random.choices(WORDS, k=count),
            decimals(random, count),
            random.choices((*BOOLEANS, "null"), k=count),
        ]
    columns += [
        random.choices(COUNTRIES, k=count),
        sentences(random, count, 6),
        decimals(random, count),
        decimals(random, count),
    ]
    return list(map(_template(NESTED).__mod__, zip(*columns, strict=True)))


NESTED = tuple(_nested_members())


def sparse(random: Random, count: int, position: float) -> list[str]:
    """20 of 500 keys in each row, out of a window of keys that moves as the data go on."""
    first = round(position * (SPARSE_KEYS - SPARSE_WINDOW))
    window = [f"attribute_{number}" for number in range(first, first + SPARSE_WINDOW)]
    values = tokens(random, count * SPARSE_KEYS_PER_ROW, 14)
    rows = []
    for _ in range(count):
        keys = random.sample(window, SPARSE_KEYS_PER_ROW)
        rows.append("{" + ",".join([f'"{key}":"{next(values)}"' for key in keys]) + "}")
    return rows


def wide(random: Random, count: int, _: float) -> list[str]:
    """1,000 members, half of them numbers, half short texts."""
    columns: list[Iterator[str] | list[int]] = [
        integers(random, count, 30) if number % 2 else tokens(random, count, 12) for number in range(WIDE_COLUMNS)
    ]
    template = _template([(key, "%d" if number % 2 else '"%s"') for number, key in enumerate(WIDE)])
    return list(map(template.__mod__, zip(*columns, strict=True)))


WIDE = tuple(f"column_{number}" for number in range(WIDE_COLUMNS))
_FLAT_KEYS = tuple(key for key, _ in FLAT)

SHAPES = {
    shape.name: shape
    for shape in (
        Shape("flat", "16 scalar fields, 475 B", flat, _FLAT_KEYS, 475),
        Shape("nested", "46 fields, 13 of them nested, 2.1 kB", nested, tuple(key for key, _ in NESTED), 2110),
        Shape("random_order", "the 16 fields in a different order in every row", random_order, _FLAT_KEYS, 475),
        Shape(
            "sparse",
            "20 of 500 keys in each row, drifting",
            sparse,
            tuple(f"attribute_{number}" for number in range(SPARSE_KEYS)),
            662,
        ),
        Shape("wide", "1,000 columns", wide, WIDE, 25_400),
        Shape("tiny", "5,000 flat files of 3.5 kB", flat, _FLAT_KEYS, 475),
        Shape("gzip", "flat, eight gzip files", flat, _FLAT_KEYS, 475),
    )
}
