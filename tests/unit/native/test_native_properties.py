"""For any bytes, chunks, splits and flushes the reader gives the oracle's result, and names follow its rule."""

import json

from hypothesis import example, given
from hypothesis import strategies as st
from ndjson_arrow import column_name, original_key

from tests.fuzz import fuzz_reader
from tests.fuzz.rounds import run
from tests.oracle import ndjson_oracle as oracle
from tests.unit.native.reader_driver import read_file


def test_any_chunks_splits_flushes_limits_and_known_columns_give_the_same_result() -> None:
    assert run(fuzz_reader, seconds=600, seed=20_000, rounds=3000, keep=None) == 0


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=8), max_size=8))
def test_what_the_standard_library_writes_is_read_back(document: dict[str, str]) -> None:
    for ascii_only in (True, False):
        line = json.dumps(document, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        assert read_file(line).rows == [{column_name(key): text for key, text in document.items()}]


@given(st.one_of(st.text(max_size=40), st.text(alphabet="aA_ёж", min_size=20, max_size=60)))
@example("_source")
@example("_tmp_metadata_row_index")
def test_a_name_follows_the_rule_and_is_decoded(key: str) -> None:
    name = column_name(key)
    assert name == oracle.column_name(key)
    assert original_key(name) == (None if oracle.HASHED_NAME.fullmatch(name) else key)
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_")


@given(st.text(alphabet="ab_AB01dateh", max_size=8), st.text(alphabet="ab_AB01dateh", max_size=8))
def test_different_keys_have_different_names(first: str, second: str) -> None:
    assert (column_name(first) == column_name(second)) == (first == second)


@given(st.text(alphabet="ab_01f", max_size=9))
def test_a_decoded_key_has_the_name_it_is_decoded_from(name: str) -> None:
    key = original_key(name)
    assert key is None or column_name(key) == name
