"""The input of a reprocess: manifests by id, by their files, or by dataset and hours."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from lake.errors import InvalidInputError
from router.s3_uri import S3Uri, parse_s3_uri
from router.selection import Selection, parse_fields, parse_flag, parse_selection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from router.services import Services

T = TypeVar("T")

FIELDS = ("manifests", "files", "dataset", "from", "to", "only", "dryRun", "request", "token")
MAX_NAMED = 1_000
"""Maximum number of manifests or files per invocation: each costs a few reads and a write."""
EXAMPLE = (
    '{"manifests": ["<id>"]}, {"files": ["s3://bucket/key"]} or '
    '{"dataset": "orders", "from": "2026-11-01T08", "to": "2026-11-01T09"}'
)
MANIFEST_ID = re.compile(r"\d{8}T\d{6}[0-9a-f]{20}")
"""As ``lake.manifest.new_manifest_id`` makes them."""
REQUEST_ID = re.compile(r"\S{1,128}")
"""Names of executions are request ids as well."""


class Only(StrEnum):
    """Which of the selected manifests are queued again."""

    FAILED = "failed"
    """FAILED ones, and DONE ones with files that could not be read."""
    ALL = "all"
    """Every one that is FAILED or DONE."""


@dataclass(frozen=True, slots=True)
class ReprocessRequest:
    """One of ``manifests``, ``files`` and ``selection`` is given."""

    manifests: tuple[str, ...]
    files: tuple[S3Uri, ...]
    selection: Selection | None
    only: Only
    dry_run: bool
    id: str
    """A request that is repeated with its id queues no manifest twice."""
    token: str | None
    """Where a selection continues; None: at its beginning."""


def parse_reprocess(given: object, services: Services) -> ReprocessRequest:
    """Read and validate the input of a reprocess.

    Raises
    ------
    InvalidInputError
        Unknown field, not exactly one kind of selection, too many manifests or files, no request id; says what to pass.
    """
    fields = parse_fields(given, FIELDS, "reprocess", EXAMPLE)
    ways = [name for name in ("manifests", "files") if fields.get(name) is not None]
    if any(fields.get(name) is not None for name in ("dataset", "from", "to")):
        ways.append("a dataset or hours")
    if len(ways) != 1:
        problem = " and ".join(ways) if ways else "neither manifests nor files nor a dataset or hours"
        raise InvalidInputError(f"reprocess was given {problem}: pass one of {EXAMPLE}")
    return ReprocessRequest(
        manifests=_parse_list(fields, "manifests", _parse_manifest_id),
        files=_parse_list(fields, "files", parse_s3_uri),
        selection=parse_selection(fields, services) if ways == ["a dataset or hours"] else None,
        only=_parse_only(fields),
        dry_run=parse_flag(fields, "dryRun"),
        id=_parse_request_id(fields.get("request")),
        token=fields.get("token"),
    )


def _parse_list(fields: Mapping[str, Any], name: str, parse: Callable[[object], T]) -> tuple[T, ...]:
    values = fields.get(name)
    if values is None:
        return ()
    if not isinstance(values, list) or not values:
        raise InvalidInputError(f"{name} = {values!r} is not a valid list: pass one of {EXAMPLE}")
    if len(values) > MAX_NAMED:
        raise InvalidInputError(
            f"{name} has {len(values):,} entries, one reprocess takes {MAX_NAMED:,}: pass fewer, or a dataset and "
            "its hours"
        )
    return tuple(dict.fromkeys(map(parse, values)))


def _parse_manifest_id(given: object) -> str:
    if not isinstance(given, str) or not MANIFEST_ID.fullmatch(given):
        raise InvalidInputError(f"{given!r} is not a valid manifest id: pass one as explain and the verdicts name it")
    return given


def _parse_only(fields: Mapping[str, Any]) -> Only:
    value = fields.get("only") or Only.FAILED
    if value not in list(Only):
        raise InvalidInputError(f"only = {value!r} is unknown: pass {' or '.join(Only)}")
    return Only(value)


def _parse_request_id(given: object) -> str:
    if not isinstance(given, str) or not REQUEST_ID.fullmatch(given):
        raise InvalidInputError(f"request = {given!r} is not a valid id: pass up to 128 characters without spaces")
    return given
