"""A short run of `make fuzz` on the Parquet writer, with a fixed seed."""

from tests.fuzz import fuzz_parquet
from tests.fuzz.rounds import run


def test_the_native_parquet_writer_and_pyarrow_agree() -> None:
    run(fuzz_parquet, seed=30_000, rounds=150)
