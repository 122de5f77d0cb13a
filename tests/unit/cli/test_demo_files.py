"""The demo takes the files that the deployed settings take, and its proof reads every one of them."""

from __future__ import annotations

import bz2
import gzip
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from cli.demo.files import user_files
from cli.demo.proof import count_input

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXT = b'{"a": 1}\n{"a": 2}\n\nno JSON\n'


def zst(text: bytes) -> bytes:
    """Two frames, as a tool that appends would write them."""
    return b"".join(pa.compress(part, "zstd", asbytes=True) for part in (text[:9], text[9:]))


def test_files_are_taken_by_suffix_in_any_case_and_named_without_it(tmp_path: Path) -> None:
    for name in ("Orders.NDJSON", "clicks.json.bz2", "views.jsonl.Zst", "notes.csv"):
        (tmp_path / name).write_bytes(b"")
    files, left_out = user_files(tmp_path)
    assert sorted(file.dataset for file in files) == ["clicks", "orders", "views"]
    assert [path.name for path in left_out] == ["notes.csv"]


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, zst])
def test_the_proof_reads_every_codec(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    plain.write_bytes(TEXT)
    packed.write_bytes(compress(TEXT))
    count, checksum = count_input(packed, "uri", "things")
    assert (count.lines, count.rows, count.blank, count.invalid, count.unreadable) == (4, 2, 1, 1, None)
    assert (count, checksum) == count_input(plain, "uri", "things")
