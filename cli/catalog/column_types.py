"""Finds the type to which a column's text can be cast, and writes views with these casts in three dialects. Pure.

A type accepts a value only if a pattern matches the whole value. So the casts of Athena, DuckDB and Spark agree,
although they round, trim and truncate differently: an accepted value keeps its digits (a DOUBLE about 16). A value that
is not accepted is NULL in the typed column, and unchanged in the text column.
"""

import glob
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from itertools import islice

from lake.settings.declaration import is_date

MAX_DIGITS = 38
"""Maximum precision of a DECIMAL in Athena, DuckDB and Spark."""
MAX_SCALE = 28
"""Maximum number of digits after the point in a proposed DECIMAL, so that 10 are left before it."""
MAX_FRACTION_DIGITS = 6
"""Number of fractional digits of a second in a TIMESTAMP of DuckDB and Spark."""
MAX_REFUSED_PERCENT = 10
"""A type is proposed if it refuses at most this percentage of the sample's values."""
MAX_EXAMPLES = 3
MAX_CHARACTERS = 100
"""Maximum length of a number or time that a type accepts; JSON can be longer."""

_DATE = "(?:1[6-9]|2[0-9])[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_TIME = "[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_ZONE = "(?:Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9])"
_PLAIN_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(?:[.]([0-9]+))?")
_SECOND = re.compile(r"[^.]*:[0-9]{2}(?:[.]([0-9]+))?(?:Z|[+-][0-9:]{2,6})?")


class TypeKind(StrEnum):
    """Kinds of types; if several accept the same number of values, the first is proposed."""

    BOOLEAN = "BOOLEAN"
    BIGINT = "BIGINT"
    DECIMAL = "DECIMAL"
    DOUBLE = "DOUBLE"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    """A time without an offset, as a clock showed it."""
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
        """A regular expression for the whole value, in the syntax that RE2, Java and Python share; empty for JSON."""
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
        """Whether the cast of the views gives a value; it gives NULL for a text that is not accepted."""
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
    """The type to which a column of a sample can be cast."""

    type: ColumnType | None
    """None: it stays VARCHAR."""
    values: int
    """Number of values in the sample, without NULL."""
    refused: int
    examples: tuple[str, ...] = ()


def propose(counts: Mapping[str, int]) -> Proposal:
    """Return the type that accepts most values of a sample. ``counts``: occurrences of each value, without NULL."""
    values = sum(counts.values())
    best, refused = None, min(values, values * MAX_REFUSED_PERCENT // 100 + 1)
    for candidate in _candidates(counts):
        if (number := _count_refused(candidate, counts, refused)) < refused:
            best, refused = candidate, number
        if refused == 0:
            break
    if best is None:
        return Proposal(None, values, 0)
    examples = (text for text in counts if not best.accepts(text))
    return Proposal(best, values, refused, tuple(islice(examples, MAX_EXAMPLES)))


def _count_refused(candidate: ColumnType, counts: Mapping[str, int], limit: int) -> int:
    """Return the number of values that the type refuses, up to ``limit``."""
    refused = 0
    for text, count in counts.items():
        if refused >= limit:
            break
        refused += 0 if candidate.accepts(text) else count
    return refused


def _candidates(texts: Mapping[str, int]) -> Iterator[ColumnType]:
    short = [text for text in texts if len(text) <= MAX_CHARACTERS]
    numbers = [match for text in short if (match := _PLAIN_NUMBER.fullmatch(text))]
    scale = min(MAX_SCALE, max((len(match[2] or "") for match in numbers), default=0))
    seconds = [match for text in short if (match := _SECOND.fullmatch(text))]
    fraction = min(MAX_FRACTION_DIGITS, max((len(match[1] or "") for match in seconds), default=0))
    for kind in TypeKind:
        if kind is TypeKind.DECIMAL:
            if any(_has_significant_digits(match) for match in numbers):
                yield ColumnType(kind, scale)
        elif kind in (TypeKind.TIMESTAMP, TypeKind.INSTANT):
            yield ColumnType(kind, fraction)
        else:
            yield ColumnType(kind)


def _has_significant_digits(number: re.Match[str]) -> bool:
    """Whether a DOUBLE would change the number, or it was written with a fixed number of digits, as money is."""
    text, fraction = number[0], number[2] or ""
    if not fraction:
        return not ColumnType(TypeKind.BIGINT).accepts(text) and text != "-0"
    return (len(fraction) > 1 and fraction.endswith("0")) or Decimal(repr(float(text))) != Decimal(text)


def _is_json(text: str) -> bool:
    if not text.startswith(("{", "[")):
        return False
    try:
        # JSON has no NaN. DuckDB refuses a lone surrogate, which has no bytes.
        json.dumps(json.loads(text, parse_constant=int, parse_int=str), ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


PARTITION_COLUMNS = ("date", "hour")
HIVE_PRECISION = 3
"""Digits of a second's fraction in a TIMESTAMP of Athena's tables (Data types in Amazon Athena)."""
MAX_DOUBLE = "1.7976931348623157E308"
"""Largest finite number (IEEE 754): beyond it some casts give infinity and some NULL."""


class Dialect(StrEnum):
    ATHENA = "athena"
    """The dialect of Athena and Trino."""
    DUCKDB = "duckdb"
    SPARK = "spark"


def quoted(name: str, dialect: Dialect) -> str:
    mark = "`" if dialect is Dialect.SPARK else '"'
    return f"{mark}{name.replace(mark, mark + mark)}{mark}"


def text_names(columns: Sequence[str], typed: Mapping[str, ColumnType]) -> dict[str, str]:
    """Return the name of the text column of each typed column in a view; no other column has the name."""
    names: dict[str, str] = {}
    for column in typed:
        name = f"{column}_text"
        while name in columns or name in names.values() or name in PARTITION_COLUMNS:
            name += "_"
        names[column] = name
    return names


def cast_of(column: str, column_type: ColumnType, dialect: Dialect) -> str:
    """Return an expression for the column's value as this type; NULL where the type does not accept the text."""
    name = quoted(column, dialect)
    if column_type.kind is TypeKind.JSON:
        return _json_of(name, dialect)
    condition, value = _matches(name, column_type.pattern, dialect), _value_of(name, column_type, dialect)
    if column_type.kind is TypeKind.DOUBLE:
        limit = f"CAST('{MAX_DOUBLE}' AS DOUBLE)"
        condition += f" AND {value} BETWEEN -{limit} AND {limit}"
    return f"CASE WHEN {condition} THEN {value} END"


def athena_view(database: str, table: str, columns: Sequence[str], typed: Mapping[str, ColumnType]) -> str:
    place, view, source = (quoted(name, Dialect.ATHENA) for name in (database, view_name(table), table))
    body = _selected(columns, typed, Dialect.ATHENA)
    return f"CREATE OR REPLACE VIEW {place}.{view} AS\nSELECT\n{body}\nFROM {place}.{source}"


def spark_view(database: str, table: str, columns: Sequence[str], typed: Mapping[str, ColumnType]) -> str:
    """Return a view of the session: a stored view would replace Athena's in the catalog, and only Spark can read it.

    ``database``: of an Iceberg table; empty: the table is the session's view in docs/analysts.md.
    """
    source = ".".join(quoted(name, Dialect.SPARK) for name in (database, table) if name)
    view, body = quoted(view_name(table), Dialect.SPARK), _selected(columns, typed, Dialect.SPARK)
    return f"CREATE OR REPLACE TEMPORARY VIEW {view} AS\nSELECT\n{body}\nFROM {source}"


def duckdb_view(source: str, table: str, columns: Sequence[str], typed: Mapping[str, ColumnType]) -> str:
    """Return a view over ``source`` with all of its columns; columns without a type are unchanged."""
    dialect, names = Dialect.DUCKDB, text_names(columns, typed)
    casts = [f"    {cast_of(name, kind, dialect)} AS {quoted(name, dialect)}" for name, kind in typed.items()]
    texts = [f"  {quoted(name, dialect)} AS {quoted(names[name], dialect)}" for name in typed]
    every = "  * REPLACE (\n" + ",\n".join(casts) + "\n  )" if casts else "  *"
    body = ",\n".join((every, *texts))
    return f"CREATE OR REPLACE VIEW {quoted(view_name(table), dialect)} AS\nSELECT\n{body}\nFROM {source}"


def duckdb_folder(folder: str) -> str:
    """Return the objects of a dataset's folder; ``folder``: its URI or path, without a slash at the end."""
    path = f"{glob.escape(folder)}/*/*/*.parquet".replace("'", "''")
    types = "{'date': DATE, 'hour': INTEGER}"
    return f"read_parquet('{path}', union_by_name = true, hive_partitioning = true, hive_types = {types})"


def view_name(table: str) -> str:
    return f"{table}_typed"


def _selected(columns: Sequence[str], typed: Mapping[str, ColumnType], dialect: Dialect) -> str:
    names, lines = text_names(columns, typed), []
    for column in (*columns, *PARTITION_COLUMNS):
        name = quoted(column, dialect)
        if column in typed:
            lines.append(f"  {cast_of(column, typed[column], dialect)} AS {name}")
            lines.append(f"  {name} AS {quoted(names[column], dialect)}")
        else:
            lines.append(f"  {name}")
    return ",\n".join(lines)


def _matches(name: str, pattern: str, dialect: Dialect) -> str:
    # `$` would accept a line break at the end.
    if dialect is Dialect.DUCKDB:
        return f"regexp_full_match({name}, '{pattern}')"
    if dialect is Dialect.SPARK:
        return rf"{name} RLIKE '\\A(?:{pattern})\\z'"
    return rf"regexp_like({name}, '\A(?:{pattern})\z')"


def _value_of(name: str, column_type: ColumnType, dialect: Dialect) -> str:
    kind = column_type.kind
    # Athena's tables have milliseconds: a view gets more digits only for values that have more.
    precision = HIVE_PRECISION if column_type.scale <= HIVE_PRECISION else MAX_FRACTION_DIGITS
    if kind is TypeKind.TIMESTAMP:
        if dialect is Dialect.ATHENA:
            return f"TRY_CAST(replace({name}, 'T', ' ') AS TIMESTAMP({precision}))"
        return f"TRY_CAST({name} AS TIMESTAMP{'_NTZ' if dialect is Dialect.SPARK else ''})"
    if kind is TypeKind.INSTANT:
        if dialect is Dialect.ATHENA:
            # A view of Athena cannot have a TIMESTAMP WITH TIME ZONE.
            instant = f"TRY(from_iso8601_timestamp_nanos(replace({name}, ' ', 'T')))"
            return f"CAST({instant} AT TIME ZONE 'UTC' AS TIMESTAMP({precision}))"
        if dialect is Dialect.DUCKDB:
            return f"TRY_CAST({name} AS TIMESTAMPTZ) AT TIME ZONE 'UTC'"
        return f"TRY_CAST({name} AS TIMESTAMP)"
    return f"TRY_CAST({name} AS {column_type.name})"


def _json_of(name: str, dialect: Dialect) -> str:
    """Athena's views and Spark's tables have no type for JSON: it stays text there, for their functions."""
    is_nested = f"substr({name}, 1, 1) IN ('{{', '[')"
    if dialect is Dialect.DUCKDB:
        return f"CASE WHEN {is_nested} THEN TRY_CAST({name} AS JSON) END"
    if dialect is Dialect.ATHENA:
        return f"CASE WHEN {is_nested} AND TRY(json_parse({name})) IS NOT NULL THEN {name} END"
    valid = f"(json_object_keys({name}) IS NOT NULL OR json_array_length({name}) IS NOT NULL)"
    return f"CASE WHEN {is_nested} AND {valid} THEN {name} END"
