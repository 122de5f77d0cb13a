"""For any bytes, chunks, splits and flushes the reader gives the oracle's result, and columns follow their rules."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ndjson_arrow import Reader, column_name, original_key

from tests.fuzz import fuzz_reader
from tests.fuzz.rounds import run
from tests.oracle import ndjson_oracle as oracle
from tests.unit.native.reader_driver import ReadResult, assert_same, read_file
from verify import line_rules


def test_any_chunks_splits_flushes_limits_and_known_columns_give_the_same_result() -> None:
    run(fuzz_reader, seed=20_000, rounds=3000)


@given(st.one_of(st.text(max_size=40), st.text(alphabet="aA_ёж", min_size=20, max_size=60)))
@example("_source")
@example("_tmp_metadata_row_index")
def test_a_name_follows_the_rule_and_is_decoded(key: str) -> None:
    name = column_name(key)
    assert name == line_rules.column_name(key)
    assert original_key(name) == (None if line_rules.HASHED_NAME.fullmatch(name) else key)
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_")


@given(st.text(alphabet="ab_01f", max_size=9))
def test_a_decoded_key_has_the_name_it_is_decoded_from(name: str) -> None:
    key = original_key(name)
    assert key is None or column_name(key) == name


def test_rows_have_the_time_of_arrival_of_their_file() -> None:
    # Given two files, one of them without a time of arrival
    reader, result = Reader(provenance=True), ReadResult()
    for source, arrived_at in (("one", "2026-03-17T00:00:00Z"), ("two", None)):
        reader.open(source, arrived_at=arrived_at)
        reader.feed(b"{}")
        reader.end_of_input()
        reader.read()
        reader.close()
    # When
    result.add(reader.flush())
    # Then
    assert result.rows == [
        {"_source": "one", "_arrived_at": "2026-03-17T00:00:00Z", "_offset": "0"},
        {"_source": "two", "_offset": "0"},
    ]


# The prefix in the hashed name of the second key ends inside an escape, which the hash mark seems to complete.
@pytest.mark.parametrize("key", ["k" * 300, "е" * 40])
def test_a_known_column_with_a_hashed_name_gets_its_key_when_it_is_found(key: str) -> None:
    # Given
    name = column_name(key)
    # When its key is found after the column limit is reached
    read = read_file(f'{{"x":1,"{key}":2}}'.encode(), known_columns=[name], column_limit=1)
    # Then the key has its column, and only the other key is rescued
    assert read.names == [name, "_rescued"]
    assert read.keys == [key, ""]
    assert read.rows == [{name: "2", "_rescued": '{"x":1}'}]


@pytest.mark.parametrize("known", [["date"], ["Foo"], ["a", "a"], ["_rescued"], [""]])
def test_a_known_column_must_be_a_column_name(known: list[str]) -> None:
    with pytest.raises(ValueError, match="known column"):
        Reader(known_columns=known)


def test_keys_too_long_for_a_column_are_rescued() -> None:
    # Given a key of the maximum length, and one with one byte more
    fits, too_long = "é" * 4096, "é" * 4096 + "x"
    data = f'{{"{fits}":1,"{too_long}":2}}'.encode()
    # When
    read = read_file(data)
    # Then
    assert read.rows == [{column_name(fits): "1", "_rescued": f'{{"{too_long}":2}}'}]
    assert_same(read, oracle.read(data))
