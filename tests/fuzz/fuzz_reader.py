"""Differential fuzzing of the native reader: mutated NDJSON, fed and split anywhere, against the oracle.

python -m tests.fuzz.fuzz_reader --seconds 60 --seed 7
"""

import random
import sys
from typing import TypedDict

from tests.fuzz.rounds import main
from tests.oracle import ndjson_oracle as oracle
from tests.unit.native.reader_driver import assert_same, read_file

TOKENS = [
    b"{", b"}", b"[", b"]", b":", b",", b'"', b"\\", b"\\u", b"\\ud800", b"\\udc00", b"\\ud83d\\ude00", b"\\u0000",
    b"\\n", b"\\q", b"0", b"-", b"1.5e-3", b"1e", b".", b"-0", b"9" * 25, b"9" * 4301, b"true", b"nul", b"NaN",
    b"Infinity", b"\n", b"\r\n", b"\n\n", b" ", b"\t", b"\x00", b"\x1f", b"\x7f", b"\xff", b"\xc3", b"\xc3\xa9",
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
    b"{}\n",
    b"[1]\n",
    b"\n",
]


class Rules(TypedDict):
    """What reader and oracle are both told."""

    column_limit: int
    max_line_bytes: int
    known_columns: tuple[str, ...]


def make_input(chance: random.Random) -> bytes:
    data = bytearray(b"".join(chance.choices(SEEDS, k=chance.randint(1, 8))))
    for _ in range(chance.choice([0, 1, 1, 2, 5, 20])):
        at = chance.randrange(len(data) + 1)
        if chance.random() < 0.5:
            at = max(data.find(chance.choice(b'",:{['), at), 0) + chance.randrange(2)
        kind = chance.randrange(4)
        if kind == 0:
            data[at:at] = chance.choice(TOKENS)
        elif kind == 1:
            del data[at : at + chance.randint(1, 4)]
        elif kind == 2:
            data[at : at + 1] = bytes([chance.randrange(256)])
        else:
            start = chance.randrange(len(data) + 1)
            data[at:at] = data[start : start + chance.randint(1, 40)]
    return bytes(data)


def compare(data: bytes, chance: random.Random) -> None:
    """Raises AssertionError where the reader and the oracle disagree."""
    size = len(data) + 2
    rules: Rules = {
        "column_limit": chance.choice([0, 2, 1000]),
        "max_line_bytes": chance.choice([20, 120, 1 << 20]),
        "known_columns": chance.choice([(), ("id",), ("zz", "__i__d", "date__")]),
    }
    read = read_file(
        data,
        cuts=[chance.randrange(size) for _ in range(chance.choice([0, 1, 10, size]))],
        splits=[chance.randrange(size) for _ in range(chance.choice([0, 0, 1, 5]))],
        flush_bytes=chance.choice([1, 100, 1 << 20]),
        provenance=True,
        **rules,
    )
    assert_same(read, oracle.read(data, **rules), provenance=True)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
