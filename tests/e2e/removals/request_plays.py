"""What makes ``catalog``, ``stream_control``, ``promote`` and ``reprocess`` use their permissions."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from tests.e2e.removals.function_plays import NOTHING, answer, owner_of, routed

if TYPE_CHECKING:
    from tests.e2e.removals.stage import Stage


def tables(stage: Stage) -> str:
    stage.scenario.deployment.ledger.datasets.register(f"r{secrets.token_hex(4)}")
    return answer(stage, "catalog", NOTHING)


def tables_with_new_columns(stage: Stage) -> str:
    datasets, name = stage.scenario.deployment.ledger.datasets, f"r{secrets.token_hex(4)}"
    datasets.register(name)
    stage.invoke("catalog", NOTHING)
    datasets.reserve_columns(name, ("a",), 1000)
    return answer(stage, "catalog", NOTHING)


def the_stream_is_watched(stage: Stage) -> str:
    return answer(stage, "stream_control", {"action": "watch"})


def the_stream_is_stopped(stage: Stage) -> str:
    return answer(stage, "stream_control", {"action": "stop"})


def the_stream_is_started(stage: Stage) -> str:
    return answer(stage, "stream_control", {"action": "start"})


def the_stream_is_killed(stage: Stage) -> str:
    stage.scenario.deployment.glue.start_job_run(JobName=stage.scenario.deployment.resources.stream_job)
    try:
        return answer(stage, "stream_control", {"action": "kill"})
    finally:
        stage.invoke("stream_control", {"action": "kill"})


def a_promotion(stage: Stage) -> str:
    file = routed(stage)
    stage.scenario.deployment.ledger.stream.end()
    return answer(stage, "promote", {"files": [file.uri]})


def a_promotion_of_an_unknown_dataset(stage: Stage) -> str:
    return answer(stage, "promote", {"dataset": "nowhere"})


def a_reprocess(stage: Stage) -> str:
    file = routed(stage)
    stage.done_without(file, owner_of(stage, file))
    return answer(stage, "reprocess", {"files": [file.uri], "only": "all"})


def a_dry_run_of_a_reprocess(stage: Stage) -> str:
    file = routed(stage)
    stage.done_without(file, owner_of(stage, file))
    return answer(stage, "reprocess", {"files": [file.uri], "only": "all", "dryRun": True})


def a_reprocess_of_a_superseded_manifest(stage: Stage) -> str:
    file = routed(stage)
    stage.superseded(stage.row(owner_of(stage, file)), file)
    return answer(stage, "reprocess", {"files": [file.uri]})


def a_reprocess_of_an_unknown_dataset(stage: Stage) -> str:
    return answer(stage, "reprocess", {"dataset": "nowhere"})
