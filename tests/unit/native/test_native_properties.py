"""For any bytes, chunks, splits and flushes the reader gives the oracle's result, and names follow its rule."""

from hypothesis import example, given
from hypothesis import strategies as st
from ndjson_arrow import column_name, original_key

from tests.fuzz import fuzz_reader
from tests.fuzz.rounds import run
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
