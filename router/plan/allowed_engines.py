"""Which engines the job runs of a plan may use. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lake.settings import BatchSettings


def allowed_engines(given: Mapping[str, Any], batch: BatchSettings) -> tuple[str, ...]:
    """The engine that the input field ``engine`` names; without one, all of ``batch.engines``.

    Raises
    ------
    InvalidInputError
        The settings do not allow the engine, so it may not be deployed.
    """
    asked = given.get("engine")
    if asked is None:
        return batch.engines
    if asked not in batch.engines:
        raise InvalidInputError(
            f"engine = {asked!r} is not allowed: pass one of {', '.join(batch.engines)}, "
            "or add it to batch.engines and deploy the stack again"
        )
    return (asked,)
