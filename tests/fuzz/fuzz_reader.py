"""Differential fuzzing of the native reader: mutated NDJSON, fed and split at random positions, against the oracle."""

import json
import random
from typing import Any

from tests.oracle import ndjson_oracle as oracle
from tests.unit.native.reader_driver import assert_same, read_file

TOKENS = [
    b"{", b"}", b"[", b"]", b":", b",", b'"', b"\\", b"\\u", b"\\ud800", b"\\udc00", b"\\ud83d\\ude00", b"\\u0000",
    b"\\n", b"\\q", b"0", b"-", b"1.5e-3", b"1e", b".", b"-0", b"9" * 25, b"9" * 4301, b"true", b"nul", b"NaN",
    b"Infinity", b"\n", b"\r\n", b"\n\n", b" ", b"\t", b"\x00", b"\x1e", b"\x7f", b"\xff", b"\xc3", b"\xc3\xa9",
    b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\xef\xbb\xbf", b'"a":1', b'"a":', b',"a":2', b"{}",
    b"[" * 130, b"]" * 130, b'{"x":' * 90, b"}" * 90,
]  # fmt: skip
SEEDS = [
    b'{"id":1,"name":"x","tags":["a",{"b":null}],"price":1.10}\n',
    b'{"id":2,"name":"\\u00e9\\n","tags":[],"price":-1E+400,"ID":true}\r\n',
    b' { "a" : "\xf0\x9f\x98\x80" , "date" : "2026-01-01" , "_rescued" : {} } \n',
    b'{"userId":"\\ud83d\\ude00","deep":{"a":{"b":[[[{"c":"\\ud800"}]]]}}}\n',
    b'{"k1":1,"k2":2,"k3":3,"k4":4,"":"empty"}\n',
    b'{"id": 3, "name": "json.dumps", "price": null,  "k1":1}\n',
    b'{"name":"other order","id":4}\n',
    b'{"empty":"","a\\/b":"\\/\\b\\f\\t","D":-0.0}\n',
    b'{"a":1,"a":2,"s":"\\ud800"}\n',
    b'{"deep":' + b"[" * 255 + b"]" * 255 + b"}\n",
    b"{}\n",
    b"[1]\n",
    b"\n",
]


SPACES = [b"", b"", b"", b" ", b"\n", b"\r\n  ", b"\t", b" " * 50, b"\n" * 30]


def make_array(rng: random.Random) -> bytes:
    """An array of rows and other values, with white space anywhere."""

    def space() -> bytes:
        return rng.choice(SPACES)

    def value() -> bytes:
        element = rng.choice(SEEDS).strip() or b'["]", {"a":"\\"}]'
        if rng.random() < 0.2:
            element = b"[" + element + b"," + b'"' + b"x" * rng.randrange(200) + b'"]'
        return space() + element + space()

    body = b",".join(value() for _ in range(rng.randrange(6)))
    data = space() + b"[" + body + space() + b"]" + space()
    return rng.choice([b"", b"", b"\xef\xbb\xbf"]) + data + rng.choice([b"", b"", b"", data, b"x\n{}\n[1]"])


def make_input(rng: random.Random) -> bytes:
    data = bytearray(make_array(rng) if rng.random() < 0.5 else b"".join(rng.choices(SEEDS, k=rng.randint(1, 8))))
    for _ in range(rng.choice([0, 1, 1, 2, 5, 20])):
        position = rng.randrange(len(data) + 1)
        if rng.random() < 0.5:
            position = max(data.find(rng.choice(b'",:{['), position), 0) + rng.randrange(2)
        mutation = rng.randrange(4)
        if mutation == 0:
            data[position:position] = rng.choice(TOKENS)
        elif mutation == 1:
            del data[position : position + rng.randint(1, 4)]
        elif mutation == 2:
            data[position : position + 1] = bytes([rng.randrange(256)])
        else:
            start = rng.randrange(len(data) + 1)
            data[position:position] = data[start : start + rng.randint(1, 40)]
    return bytes(data)


def compare(data: bytes, rng: random.Random) -> None:
    """Raises AssertionError if the reader and the oracle give different results."""
    size = len(data) + 2
    # The options that the reader and the oracle share.
    rules: dict[str, Any] = {
        "column_limit": rng.choice([0, 2, 1000]),
        "max_line_bytes": rng.choice([20, 120, 1 << 20]),
        "concatenated": rng.random() < 0.3,
        "known_columns": rng.choice([(), ("id",), ("zz", "__i__d", "date__")]),
    }
    read = read_file(
        data,
        cuts=[rng.randrange(size) for _ in range(rng.choice([0, 1, 10, size]))],
        splits=[rng.randrange(size) for _ in range(rng.choice([0, 0, 1, 5]))],
        flush_bytes=rng.choice([1, 100, 1 << 20]),
        provenance=True,
        **rules,
    )
    expected = oracle.read(data, **rules)
    assert_same(read, expected, provenance=True)
    check_array(data, expected)


def check_array(data: bytes, found: oracle.OracleResult) -> None:
    """Raises AssertionError if Python's parser finds other elements of the array; they are lines."""
    try:
        array = json.loads(data.decode("utf-8-sig"), parse_constant=int)
    except (ValueError, RecursionError):
        array = None
    first = data.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")[:1]
    reasons = {reason for _, _, reason, _ in found.rejects}
    if isinstance(array, list) and first == b"[":
        offsets = [*(row[0] for row in found.rows), *(reject[0] for reject in found.rejects)]
        assert sum(offset > data.index(b"[") for offset in offsets) == len(array)
        assert not reasons & {"not JSON", "invalid UTF-8", "trailing characters"}
        assert len(found.rows) <= sum(isinstance(element, dict) for element in array)
