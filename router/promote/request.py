"""What a person asks to be promoted: files by name, or a part of the backlog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake.errors import InvalidInputError
from router.s3_uri import Name, parse_name
from router.selection import Selection, check_flag, fields_of, parse_selection

if TYPE_CHECKING:
    from router.services import Services

FIELDS = ("files", "dataset", "from", "to", "dryRun")
MAX_URIS = 1_000
"""Of one invocation; the files of a request by name can be in as many manifests."""
FILES_EXAMPLE = '{"files": ["s3://bucket/key"]}'
SELECTION_EXAMPLE = '{"dataset": "orders", "from": "2026-11-01T08", "to": "2026-11-01T09"}'


@dataclass(frozen=True, slots=True)
class PromoteRequest:
    """Names, or a selection: never both."""

    names: tuple[Name, ...]
    selection: Selection | None
    dry_run: bool


def parse_request(given: object, services: Services) -> PromoteRequest:
    """Read a promote's input.

    Raises
    ------
    InvalidInputError
        One message that says what to type.
    """
    fields = fields_of(given, FIELDS, "promote", f"{FILES_EXAMPLE} or {SELECTION_EXAMPLE}")
    dry_run = check_flag(fields, "dryRun")
    by_name = fields.get("files") is not None
    by_selection = any(fields.get(name) is not None for name in ("dataset", "from", "to"))
    if by_name == by_selection:
        said = "both files and a selection" if by_name else "neither files nor a selection"
        raise InvalidInputError(f"promote was given {said}: type {FILES_EXAMPLE} or {SELECTION_EXAMPLE}")
    if by_selection:
        return PromoteRequest((), parse_selection(fields, services), dry_run)
    return PromoteRequest(_names(fields["files"]), None, dry_run)


def _names(files: object) -> tuple[Name, ...]:
    if not isinstance(files, list) or not files:
        raise InvalidInputError(f"files = {files!r} is no list of S3 URIs: type {FILES_EXAMPLE}")
    if len(files) > MAX_URIS:
        raise InvalidInputError(
            f"files names {len(files):,} URIs, one promote takes {MAX_URIS:,}: type fewer, or a dataset and its hours"
        )
    return tuple(dict.fromkeys(map(parse_name, files)))
