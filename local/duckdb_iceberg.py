"""DuckDB with its Iceberg extension, which is installed as a package: its use downloads nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import duckdb

from local.isolation import REGION, AccessKey

EXTENSIONS = ("avro", "httpfs", "iceberg")


@contextmanager
def duckdb_with_iceberg(
    endpoint: str | None = None, key: AccessKey | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Return a connection that knows ``iceberg_scan``; ``endpoint`` (URL) and ``key`` belong to a local cloud's S3."""
    # The package's extension is signed for the repository from which DuckDB itself would download it.
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        for name in EXTENSIONS:
            spec = find_spec(f"duckdb_extension_{name}")
            assert spec is not None
            (file,) = (
                path
                for folder in spec.submodule_search_locations or ()
                for path in Path(folder).rglob("*.duckdb_extension")
            )
            connection.load_extension(str(file))
        if endpoint is not None and key is not None:
            connection.execute(
                f"CREATE SECRET (TYPE s3, KEY_ID '{key.id}', SECRET '{key.secret}', REGION '{REGION}', "
                f"ENDPOINT '{endpoint.partition('://')[2]}', URL_STYLE 'path', USE_SSL false)"
            )
        yield connection
