"""The input of a promote: files by URI, or a part of the backlog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake.errors import InvalidInputError
from router.s3_uri import S3Uri, parse_s3_uri
from router.selection import Selection, parse_fields, parse_flag, parse_selection

if TYPE_CHECKING:
    from router.services import Services

FIELDS = ("files", "dataset", "from", "to", "dryRun")
MAX_URIS = 1_000
"""Maximum number of URIs per invocation: each can be in a manifest of its own, which costs a read and a transaction."""
FILES_EXAMPLE = '{"files": ["s3://bucket/key"]}'
SELECTION_EXAMPLE = '{"dataset": "orders", "from": "2026-11-01T08", "to": "2026-11-01T09"}'


@dataclass(frozen=True, slots=True)
class PromoteRequest:
    """Either URIs or a selection."""

    uris: tuple[S3Uri, ...]
    selection: Selection | None
    """None: the URIs."""
    dry_run: bool


def parse_promotion(given: object, services: Services) -> PromoteRequest:
    """Read and validate the input of a promote.

    Raises
    ------
    InvalidInputError
        Unknown field, neither files nor a selection or both, or too many files; says what to pass.
    """
    fields = parse_fields(given, FIELDS, "promote", f"{FILES_EXAMPLE} or {SELECTION_EXAMPLE}")
    dry_run = parse_flag(fields, "dryRun")
    has_files = fields.get("files") is not None
    has_selection = any(fields.get(name) is not None for name in ("dataset", "from", "to"))
    if has_files == has_selection:
        problem = "both files and a selection" if has_files else "neither files nor a selection"
        raise InvalidInputError(f"promote was given {problem}: pass {FILES_EXAMPLE} or {SELECTION_EXAMPLE}")
    if has_selection:
        return PromoteRequest((), parse_selection(fields, services), dry_run)
    return PromoteRequest(_parse_uris(fields["files"]), None, dry_run)


def _parse_uris(files: object) -> tuple[S3Uri, ...]:
    if not isinstance(files, list) or not files:
        raise InvalidInputError(f"files = {files!r} is not a valid list of S3 URIs: pass {FILES_EXAMPLE}")
    if len(files) > MAX_URIS:
        raise InvalidInputError(
            f"files names {len(files):,} URIs, one promote takes {MAX_URIS:,}: pass fewer, or a dataset and its hours"
        )
    return tuple(dict.fromkeys(map(parse_s3_uri, files)))
