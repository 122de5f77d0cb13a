"""Lambda function ``backfill``: the first states of the ``backfill`` state machine, which a person starts.

The command line asks it to validate a request before it starts the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError
from router.entry import with_product_errors, with_refusals
from router.listing.unrecorded import ListingRequest, find_unrecorded
from router.requests.selection import check_kept, parse_fields, parse_flag, parse_selection
from router.services import Services, container_services
from router.telemetry import logger

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

FIELDS = ("dataset", "from", "to", "dryRun", "force")
EXAMPLE = '{"dataset": "orders", "from": "2026-11-01", "to": "2026-11-02", "dryRun": true}'


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """A dataset and a range of UTC hours."""

    dataset: str
    first: str
    """``YYYY-MM-DDTHH``, inclusive."""
    last: str
    """``YYYY-MM-DDTHH``, inclusive."""
    dry_run: bool
    force: bool
    """Convert again what the ledger knows as DONE or FAILED."""

    def listing(self) -> ListingRequest:
        reason = f"backfill {self.first} to {self.last}"
        return ListingRequest(self.dataset, self.first, self.last, reason, dry_run=self.dry_run)

    def normalised(self) -> dict[str, Any]:
        """As the state machine carries it; parsing it again gives the same request."""
        return {
            "dataset": self.dataset,
            "from": self.first,
            "to": self.last,
            "dryRun": self.dry_run,
            "force": self.force,
        }


@with_product_errors
@with_refusals
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """``{"action": "validate", "input"}`` -> the request; ``{"action": "find", "request", "token"}`` -> totals."""
    return backfill(event, container_services())


def backfill(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Validate a request, or list its objects for a bounded time; ``token`` is null when all are listed.

    Raises ``InvalidInputError``: unknown action, invalid request, or a token of another function.
    """
    action = event.get("action")
    if action == "validate":
        return _parse(event.get("input"), services).normalised()
    if action == "find":
        request = _parse(event.get("request"), services)
        result = find_unrecorded(services, request.listing(), event.get("token"))
        logger.info("backfill", request=event["request"], **{**result, "token": result["token"] is not None})
        return result
    raise InvalidInputError(f"action = {action!r} is unknown: expected validate or find")


def _parse(given: object, services: Services) -> BackfillRequest:
    """Read and validate the input of a backfill.

    Raises ``InvalidInputError``: one sentence that says what is wrong and what to pass.
    """
    fields = parse_fields(given, FIELDS, "backfill", EXAMPLE)
    missing = [name for name in ("dataset", "from", "to") if fields.get(name) is None]
    if missing:
        raise InvalidInputError(f"backfill needs {', '.join(missing)}: pass for example {EXAMPLE}")
    selection = parse_selection(fields, services)
    assert selection.dataset is not None
    assert selection.first is not None
    assert selection.last is not None
    check_kept(selection.first, services)
    return BackfillRequest(
        selection.dataset,
        selection.first,
        selection.last,
        dry_run=parse_flag(fields, "dryRun"),
        force=parse_flag(fields, "force"),
    )
