"""Views that cast the text of a dataset's columns, for Athena and Trino, DuckDB, and Spark. Pure.

A value that a cast does not accept is NULL in the column of the type, and unchanged in the column of the text.
"""

import glob
from collections.abc import Mapping, Sequence
from enum import StrEnum

from cli.catalog.column_types import MAX_FRACTION_DIGITS, ColumnType, TypeKind

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
    """For each column with a type the name under which a view has its text: no other column has it."""
    names: dict[str, str] = {}
    for column in typed:
        name = f"{column}_text"
        while name in columns or name in names.values() or name in PARTITION_COLUMNS:
            name += "_"
        names[column] = name
    return names


def cast_of(column: str, column_type: ColumnType, dialect: Dialect) -> str:
    """An expression: the value of the column as this type; NULL where the type does not accept its text."""
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
    """A view of the session. A stored one would take the name of Athena's in the catalog, which only Spark can read.

    ``database``: of an Iceberg table; empty: the table is a view of the session, which docs/analysts.md makes.
    """
    source = ".".join(quoted(name, Dialect.SPARK) for name in (database, table) if name)
    view, body = quoted(view_name(table), Dialect.SPARK), _selected(columns, typed, Dialect.SPARK)
    return f"CREATE OR REPLACE TEMPORARY VIEW {view} AS\nSELECT\n{body}\nFROM {source}"


def duckdb_view(source: str, table: str, columns: Sequence[str], typed: Mapping[str, ColumnType]) -> str:
    """A view over ``source``: it has every column of it, those without a type as they are."""
    dialect, names = Dialect.DUCKDB, text_names(columns, typed)
    casts = [f"    {cast_of(name, kind, dialect)} AS {quoted(name, dialect)}" for name, kind in typed.items()]
    texts = [f"  {quoted(name, dialect)} AS {quoted(names[name], dialect)}" for name in typed]
    every = "  * REPLACE (\n" + ",\n".join(casts) + "\n  )" if casts else "  *"
    body = ",\n".join((every, *texts))
    return f"CREATE OR REPLACE VIEW {quoted(view_name(table), dialect)} AS\nSELECT\n{body}\nFROM {source}"


def duckdb_folder(folder: str) -> str:
    """The objects of a dataset's folder; ``folder``: its URI or path, without a slash at the end."""
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
    # `$` would let a line break at the end pass.
    if dialect is Dialect.DUCKDB:
        return f"regexp_full_match({name}, '{pattern}')"
    if dialect is Dialect.SPARK:
        return rf"{name} RLIKE '\\A(?:{pattern})\\z'"
    return rf"regexp_like({name}, '\A(?:{pattern})\z')"


def _value_of(name: str, column_type: ColumnType, dialect: Dialect) -> str:
    kind = column_type.kind
    # Athena's tables have milliseconds: a view gets more only for values that have more.
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
