"""Cases for each rule of RFC 8259 and each reason, for the reader and the oracle."""

import pytest
from ndjson_arrow import REASONS

from tests.oracle import ndjson_oracle as oracle
from tests.unit.native.reader_driver import assert_same, read_file

ACCEPTED = [
    # section 2: structural characters and insignificant white space
    (b'{"a":1}', {"a": "1"}),
    (b"{}", {}),
    (b' \t\r{ "a"\t:\r1 , "b" : 2 } \r', {"a": "1", "b": "2"}),
    # section 3: literal names
    (b'{"a":true,"b":false,"c":null}', {"a": "true", "b": "false"}),
    # section 4: objects; duplicate keys inside a nested value are not checked
    (b'{"a":{"x":1,"x":2}}', {"a": '{"x":1,"x":2}'}),
    (b'{"":1}', {"__0_": "1"}),
    (b'{"a":1,"A":2}', {"a": "1", "__a": "2"}),
    # section 5: arrays
    (b'{"a":[],"b":[ 1 ,"x", [ ] ]}', {"a": "[]", "b": '[ 1 ,"x", [ ] ]'}),
    # section 6: numbers keep their characters
    (b'{"a":0,"b":-0,"c":1.10,"d":-1e5}', {"a": "0", "b": "-0", "c": "1.10", "d": "-1e5"}),
    (b'{"a":' + b"9" * 5000 + b"}", {"a": "9" * 5000}),
    (b'{"a":[' + b"9" * 5000 + b".5]}", {"a": "[" + "9" * 5000 + ".5]"}),
    # section 7: strings
    (rb'{"a":"\"\\\/\b\f\n\r\t"}', {"a": '"\\/\b\f\n\r\t'}),
    (rb'{"a":"\u0041\u00e9\u20AC\u0000"}', {"a": "Aé€\0"}),
    (rb'{"a":"\ud83d\ude00\uD83D\uDE00"}', {"a": "😀😀"}),
    ('{"a":"é€😀\x7f\u2028"}'.encode(), {"a": "é€😀\x7f\u2028"}),
    (rb'{"\u0061":1}', {"a": "1"}),
    (rb'{"a":"","b":" x "}', {"a": "", "b": " x "}),
    # section 8.2: a lone surrogate inside a nested value, which stays verbatim
    (rb'{"a":["\ud800",{"\udc00":"\ud83d\u0041"}]}', {"a": r'["\ud800",{"\udc00":"\ud83d\u0041"}]'}),
    # section 9: a parser may limit the depth
    (b'{"a":' + b"[" * 255 + b"]" * 255 + b"}", {"a": "[" * 255 + "]" * 255}),
    (b'{"a":' + b'{"b":' * 230 + b"1" + b"}" * 230 + b"}", {"a": '{"b":' * 230 + "1" + "}" * 230}),
]

REJECTED = [
    ("not JSON", rb"{'a':1}"),
    ("not JSON", b'{"a":1'),
    ("not JSON", b'{"a":1,}'),
    ("not JSON", b'{,"a":1}'),
    ("not JSON", b'{"a" 1}'),
    ("not JSON", b'{"a":}'),
    ("not JSON", b'{"a":[1,]}'),
    ("not JSON", b'{"a":[,1]}'),
    ("not JSON", b'{"a":[1}'),
    ("not JSON", b'{"a":{"b":1]}'),
    ("not JSON", b'{"a":01}'),
    ("not JSON", b'{"a":1.}'),
    ("not JSON", b'{"a":1e+}'),
    ("not JSON", b'{"a":NaN}'),
    ("not JSON", b'{"a":[NaN]}'),
    ("not JSON", b'{"a":nul}'),
    ("not JSON", b'{"a":"\x01"}'),
    ("not JSON", b'{"a":["\x1f"]}'),
    ("not JSON", b'{"\x1f":1}'),
    ("not JSON", rb'{"a":"\x41"}'),
    ("not JSON", rb'{"a":"\u12g4"}'),
    ("not JSON", b'{"a":"\\'),
    ("not JSON", rb'{"a":"\u'),
    ("not JSON", rb'{"a":"\"}'),
    ("not JSON", rb'{"a":["\q"]}'),
    ("not JSON", b'{"a":\x0b1}'),
    ("not JSON", b'{"a":\xc2\xa01}'),
    ("not JSON", b"a,b,c"),
    ("not JSON", b"{"),
    ("not JSON", b"\x00"),
    ("not JSON", b"\xef\xbb\xbf{}"),
    ("not JSON", b'{"a":"\\ud800",}'),
    ("trailing characters", b'{"a":1} garbage'),
    ("trailing characters", b'{"a":1}{"a":2}'),
    ("trailing characters", b'{"a":1}\x0c'),
    ("trailing characters", b'{"a":1}\xc2\xa0'),
    ("trailing characters", b"01"),
    ("not JSON", b"12e"),
    ("not an object", b"[]"),
    ("not an object", b'"text"'),
    ("not an object", b"null"),
    ("not an object", b'"\\ud800"'),
    ("invalid UTF-8", b'{"a":"\xff"}'),
    ("invalid UTF-8", b'{"a":"\xc0\xaf"}'),
    ("invalid UTF-8", b'{"a":"\xed\xa0\x80"}'),
    ("invalid UTF-8", b'{"a":"\xf4\x90\x80\x80"}'),
    ("invalid UTF-8", b'{"a":"\xe2\x82'),
    ("invalid UTF-8", '{"a":1}'.encode("utf-16-le")[:-1] + b"\xff"),
    ("duplicate key", b'{"a":1,"a":2}'),
    ("duplicate key", b'{"a":1,"b":2,"a":null}'),
    ("duplicate key", rb'{"a":1,"\u0061":2}'),
    ("lone surrogate", rb'{"a":"\ud800"}'),
    ("lone surrogate", rb'{"a":"\ud800\ud800"}'),
    ("lone surrogate", rb'{"a":"\ud83dx\ude00"}'),
    ("lone surrogate", rb'{"\ud800":1}'),
    ("lone surrogate", rb'{"a":1,"a":2,"b":"\ud800"}'),
    ("too deep", b'{"a":' + b"[" * 256 + b"]" * 256 + b"}"),
    ("too deep", b'{"a":' * 300),
    ("too deep", b"[" * 100_000),
    ("not JSON", b"[" * 256),
]


@pytest.mark.parametrize(("line", "row"), ACCEPTED)
def test_a_valid_object_becomes_a_row(line: bytes, row: dict[str, str]) -> None:
    # When
    read = read_file(line)
    # Then
    assert read.rows == [row]
    assert_same(read, oracle.read(line))


@pytest.mark.parametrize(("reason", "line"), REJECTED)
def test_any_other_line_is_rejected_with_its_reason(reason: str, line: bytes) -> None:
    # Given a file with the line between two rows
    data = b'{"before":1}\n' + line + b'\n{"after":1}\n'
    # When
    read = read_file(data)
    # Then
    assert [(reject.offset, reject.reason, reject.line) for reject in read.rejects] == [
        (13, reason, line if len(line) <= 65536 else None)
    ]
    assert read.rows == [{"before": "1"}, {"after": "1"}]
    assert read.names == ["_rescued", "before", "after"]
    assert_same(read, oracle.read(data))


def test_the_table_has_a_case_for_every_reason() -> None:
    assert {reason for reason, _ in REJECTED} | {"line too long"} == set(REASONS)
    assert len(REASONS) == 8
