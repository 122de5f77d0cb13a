"""Rows of an input file, by the verification's own parser; everything else is counted or passed on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lake.manifest import ObjectVersion
from lake.settings import ConvertSettings
from verify.elements import Line, lines_of
from verify.line_rules import RejectedError
from verify.objects import open_text
from verify.rows import Pairs, parse_row

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

TOO_LONG = "line too long"
NOT_JSON = "not JSON"


@dataclass(slots=True)
class InputCount:
    """The lines of one file; elements of arrays count as lines."""

    lines: int = 0
    rows: int = 0
    blank_lines: int = 0
    rejects: Counter[str] = field(default_factory=Counter)
    """By reason."""


@dataclass(frozen=True, slots=True)
class InputReader:
    """Reads files as they were converted."""

    s3: S3Client
    convert: ConvertSettings
    """With their limit of a line."""

    def read(
        self,
        file: ObjectVersion,
        *,
        provenance: bool,
        count: InputCount | None = None,
        on_reject: Callable[[Line, str], None] | None = None,
    ) -> Iterator[tuple[Line, Pairs]]:
        """The rows of a file with their lines, in order.

        Parameters
        ----------
        provenance
            Adds the values of ``_source``, ``_offset`` and ``_arrived_at``.
        count
            Counts every line.
        on_reject
            Called with each rejected line and the reason.

        Raises
        ------
        GoneError
            S3 no longer has this version.
        OSError, EOFError, ValueError
            It cannot be decompressed to its end.
        """
        counted = InputCount() if count is None else count
        with open_text(self.s3, file) as stream:
            for line in lines_of(stream, self.convert.max_line_bytes, concatenated=self.convert.concatenated):
                counted.lines += 1
                try:
                    if line.body is None:
                        raise RejectedError(TOO_LONG)
                    pairs = parse_row(line.body, first=line.offset == 0)
                    if pairs is None and line.is_element:
                        raise RejectedError(NOT_JSON)
                except RejectedError as rejected:
                    counted.rejects[str(rejected)] += 1
                    if on_reject is not None:
                        on_reject(line, str(rejected))
                    continue
                if pairs is None:
                    counted.blank_lines += 1
                    continue
                counted.rows += 1
                yield line, sorted([*pairs, *_provenance(file, line)]) if provenance else pairs


def _provenance(file: ObjectVersion, line: Line) -> Pairs:
    source = file.uri if file.version_id is None else f"{file.uri}?versionId={file.version_id}"
    return [("_source", source), ("_offset", str(line.offset)), ("_arrived_at", file.arrived_at)]
