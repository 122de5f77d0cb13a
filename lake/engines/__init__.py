"""Engines: where job runs are. Each file of an engine says everything about it; ``ENGINES`` describes all of them."""

from __future__ import annotations

from collections.abc import Mapping

from lake.engines.description import Engine, EngineDescription, StreamRuns, Units
from lake.engines.emr_serverless import EMR_SERVERLESS
from lake.engines.glue import GLUE, GLUE_FLEX

ENGINES: Mapping[str, EngineDescription] = {item.name: item for item in (GLUE_FLEX, GLUE, EMR_SERVERLESS)}
"""By name, as settings have it."""

__all__ = ["ENGINES", "Engine", "EngineDescription", "StreamRuns", "Units", "engine_of_run"]


def engine_of_run(run: str) -> EngineDescription:
    """An engine of the service that has the job run of this id; an id without a prefix is one of Glue."""
    return max((item for item in ENGINES.values() if run.startswith(item.run_prefix)), key=lambda item: item.run_prefix)
