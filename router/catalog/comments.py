"""What a Glue table says about itself to the people who find it in a query editor. Pure."""

from __future__ import annotations

import re

from lake.printable import printable

OWN_PARAMETERS = "hybrid_router."
"""Beginning of the table parameters that are ours; those of others are never changed."""
MAX_COMMENT = 255
"""Characters of a column's comment (AWS Glue API, ``Column``)."""
OWN_COLUMNS = {
    "_rescued": "JSON object: the keys that got no column, verbatim",
    "_source": "URI of the input file",
    "_offset": "first byte of the line in the input file; decompressed, if the file is compressed",
    "_arrived_at": "when the input file arrived",
}
PARTITION_COLUMNS = {
    "date": "UTC day in which the input file was first recorded",
    "hour": "UTC hour in which the input file was first recorded",
}
_RESERVED = (*OWN_COLUMNS, *PARTITION_COLUMNS)
_HASHED = re.compile(r"[a-z0-9_]{160}__1[0-9a-f]{32}_")
_ENCODED = re.compile(r"__0([0-9a-f]*)_|__([a-z])")


def table_description(dataset: str) -> str:
    """One sentence for the list of tables."""
    return (
        f"The rows of the NDJSON files of {dataset}, each exactly once. Every column is the text of the file; null and "
        f"a missing key are NULL. For types run hybrid-router catalog suggest {dataset}."
    )


def own_parameters(dataset: str, quarantine_bucket: str) -> dict[str, str]:
    """The promise, and where to look for what could not become a row."""
    return {
        f"{OWN_PARAMETERS}promise": "per file, lines = rows + quarantined lines + blank lines; each row exactly once",
        f"{OWN_PARAMETERS}quarantine": f"s3://{quarantine_bucket}/{dataset}/",
    }


def column_comment(name: str) -> str | None:
    """What a column is; None: its name is its key."""
    own = OWN_COLUMNS.get(name) or PARTITION_COLUMNS.get(name)
    if own is not None:
        return own
    key = key_of_column(name)
    if key is None:
        return "its key is in the metadata of the Parquet files"
    if key == name:
        return None
    comment = f"key {printable(key)}" if key else "the empty key"
    return comment if len(comment) <= MAX_COMMENT else f"{comment[: MAX_COMMENT - 3]}..."


def key_of_column(name: str) -> str | None:
    """The key of the input whose column this is, by the rule of docs/columns.md; None: the name is hashed."""
    if _HASHED.fullmatch(name):
        return None
    reserved = name.removesuffix("__")
    return reserved if reserved != name and reserved in _RESERVED else _ENCODED.sub(_decoded, name)


def _decoded(encoded: re.Match[str]) -> str:
    if encoded[2]:
        return encoded[2].upper()
    return chr(int(encoded[1], 16)) if encoded[1] else ""
