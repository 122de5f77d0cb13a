"""For any bytes, chunks, splits and flushes the reader gives the oracle's result."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from ndjson_arrow import column_name, detect_codec, original_key

from tests.oracle import ndjson_oracle as oracle
from tests.unit.native.reader_driver import assert_same, read_file

SPACE = st.sampled_from(["", "", "", " ", "\t", "\r", "  \t"])
PLAIN = ["a", "B", "_", "0", " ", "é", "€", "😀"]
ESCAPED = [r"\n", r"\"", r"\\", r"\/", r"\u0041", r"\u0000", r"\ud83d\ude00", r"\ud800", r"\udc00"]
LITERAL_CHARACTERS = st.sampled_from(PLAIN + ESCAPED)
STRING = st.lists(LITERAL_CHARACTERS, max_size=6).map(lambda parts: '"' + "".join(parts) + '"')
NUMBER = st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,4})?\Z", alphabet="-+.eE0123456789")
SCALAR = st.one_of(STRING, NUMBER, st.sampled_from(["true", "false", "null"]))
KEY = st.one_of(st.sampled_from(['"a"', '"b"', '"c"', '"A"', '"date"', '"_rescued"', '"\\u0061"']), STRING)


def containers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    arrays = st.tuples(SPACE, st.lists(inner, max_size=3), SPACE).map(lambda t: f"[{t[0]}{','.join(t[1])}{t[2]}]")
    return st.one_of(arrays, objects(inner))


def objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    member = st.tuples(SPACE, KEY, SPACE, SPACE, inner, SPACE).map(lambda t: f"{t[0]}{t[1]}{t[2]}:{t[3]}{t[4]}{t[5]}")
    return st.lists(member, max_size=5).map(lambda members: "{" + ",".join(members) + "}")


VALUE = st.recursive(SCALAR, containers, max_leaves=6)
ROW = st.tuples(SPACE, objects(VALUE), SPACE).map("".join).map(str.encode)
NOISE = st.one_of(
    st.binary(max_size=12),
    st.sampled_from([b"", b"  \t", b"\r", b"[1]", b"{", b"{} {}", b'{"a":01}', b"\xff", b"\xef\xbb\xbf", b"null"]),
)
DAMAGE = [b"", b'"', b"}", b",", b"\\", b"\xff", b"0", b"\x01"]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    row = bytearray(draw(ROW))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(row)))
        row[at : at + draw(st.integers(0, 2))] = draw(st.sampled_from(DAMAGE))
    return bytes(row)


LINE = st.tuples(st.one_of(ROW, ROW, ROW, mutated(), NOISE), st.sampled_from([b"\n", b"\n", b"\r\n"])).map(b"".join)
START = st.sampled_from([b"", b"", b"\xef\xbb\xbf"])
LAST_LINE = st.one_of(st.just(b""), ROW, NOISE)
# Noise that begins like a gzip or zstd file is a damaged compressed file (test_native_formats.py): it has no lines.
FILE = (
    st.tuples(START, st.lists(LINE, max_size=8), LAST_LINE)
    .map(lambda t: t[0] + b"".join(t[1]) + t[2])
    .filter(lambda data: detect_codec(data[:4]) is None)
)
POSITIONS = st.lists(st.integers(1, 400), max_size=8)


@settings(max_examples=400)
@given(FILE, POSITIONS, POSITIONS, st.sampled_from([1, 40, 1 << 20]))
def test_any_chunks_splits_and_flushes_give_the_same_result(
    data: bytes, cuts: list[int], splits: list[int], flush_bytes: int
) -> None:
    read = read_file(data, cuts=cuts, splits=splits, flush_bytes=flush_bytes, provenance=True)
    assert_same(read, oracle.read(data), provenance=True)


@settings(max_examples=60)
@given(FILE, st.integers(1, 5))
def test_splits_of_a_few_bytes_give_every_line_once(data: bytes, size: int) -> None:
    splits = range(size, len(data) + 3, size)
    assert_same(read_file(data, splits=splits, cuts=range(len(data))), oracle.read(data))


@settings(max_examples=200)
@given(FILE, st.integers(0, 3), st.integers(3, 60), st.lists(st.sampled_from(["a", "b", "zz", "__a"]), unique=True))
def test_any_limits_and_known_columns_give_the_same_result(
    data: bytes, column_limit: int, line_bytes: int, known: list[str]
) -> None:
    read = read_file(data, cuts=[7, 50], column_limit=column_limit, max_line_bytes=line_bytes, known_columns=known)
    expected = oracle.read(data, column_limit=column_limit, max_line_bytes=line_bytes, known_columns=tuple(known))
    assert_same(read, expected)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=8), max_size=8))
def test_what_the_standard_library_writes_is_read_back(document: dict[str, str]) -> None:
    for ascii_only in (True, False):
        line = json.dumps(document, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        assert read_file(line).rows == [{column_name(key): text for key, text in document.items()}]


@given(st.one_of(st.text(max_size=40), st.text(alphabet="aA_ёж", min_size=20, max_size=60)))
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
