"""Wheels of a few hundred bytes with a real ELF library in them, as input for auditwheel."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path

X86_64 = 62
HEADER_BYTES, SEGMENT_BYTES, SECTION_BYTES = 64, 56, 64
STRINGS, DYNAMIC, VERSIONS_NEEDED = 3, 6, 0x6FFFFFFE


def write_wheel(path: Path, files: dict[str, bytes]) -> Path:
    """Write a wheel with these files and the RECORD that lists them; returns its path."""
    info = f"{path.name.split('-')[0]}-1.dist-info"
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
        wheel.writestr(f"{info}/RECORD", record)
    return path


def elf_library(versions: Sequence[str], library: str = "libc.so.6") -> bytes:
    """A shared library for x86-64 that needs these symbol versions (``GLIBC_2.9``) of one other library.

    It has what a linker writes for this purpose: the dynamic section (DT_NEEDED) and the versions needed
    (https://refspecs.linuxfoundation.org/LSB_5.0.0/LSB-Core-generic/LSB-Core-generic/symversion.html).
    """
    strings, offsets = _string_table([library, *versions])
    names, name_offsets = _string_table([".dynstr", ".gnu.version_r", ".dynamic", ".shstrtab"])
    needed = struct.pack("<HHIII", 1, len(versions), offsets[0], 16, 0)
    for index, offset in enumerate(offsets[1:]):
        following = 16 if index + 1 < len(versions) else 0
        needed += struct.pack("<IHHII", 0, 0, 2 + index, offset, following)
    begin = HEADER_BYTES + 2 * SEGMENT_BYTES
    entries = [(1, offsets[0]), (5, begin), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    contents = (strings, needed, dynamic, names)
    starts = [begin + sum(map(len, contents[:index])) for index in range(len(contents) + 1)]
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01",
        *(3, X86_64, 1, 0, HEADER_BYTES, starts[-1], 0),
        *(HEADER_BYTES, SEGMENT_BYTES, 2, SECTION_BYTES, len(contents) + 1, len(contents)),
    )
    segments = _segment(1, 0, starts[-1]) + _segment(2, starts[2], len(dynamic))
    kinds = ((STRINGS, 0, 0), (VERSIONS_NEEDED, 1, 1), (DYNAMIC, 1, 0), (STRINGS, 0, 0))
    sections = bytes(SECTION_BYTES)
    for name, start, content, (kind, link, info) in zip(name_offsets, starts, contents, kinds, strict=False):
        entry_bytes = 16 if kind == DYNAMIC else 0
        sections += struct.pack("<IIQQQQIIQQ", name, kind, 2, start, start, len(content), link, info, 1, entry_bytes)
    return header + segments + b"".join(contents) + sections


def _string_table(strings: Sequence[str]) -> tuple[bytes, list[int]]:
    table, offsets = b"\0", []
    for string in strings:
        offsets.append(len(table))
        table += string.encode() + b"\0"
    return table, offsets


def _segment(kind: int, start: int, length: int) -> bytes:
    return struct.pack("<IIQQQQQQ", kind, 4, start, start, start, length, length, 1)
