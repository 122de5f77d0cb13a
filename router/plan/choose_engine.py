"""Which engine the job runs of a plan use. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lake.engines import Engine
from lake.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lake.settings import BatchSettings


def choose_engine(given: Mapping[str, Any], batch: BatchSettings) -> Engine:
    """The engine that the input field ``engine`` names; without one, the first of ``batch.engines``.

    Raises
    ------
    InvalidInputError
        The settings do not allow the engine, so it may not be deployed.
    """
    asked = given.get("engine")
    if asked is None:
        return Engine(batch.engines[0])
    if asked not in batch.engines:
        raise InvalidInputError(
            f"engine = {asked!r} is not allowed: pass one of {', '.join(batch.engines)}, "
            "or add it to batch.engines and deploy the stack again"
        )
    return Engine(asked)
