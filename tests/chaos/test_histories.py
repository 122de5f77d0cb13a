"""A short set of histories keeps every promise; mutation tests of the checker: it detects every removed rule."""

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from lake.ledger import State
from lake.ledger.transitions import Manifests
from local.cloud import LocalCloud
from router.iceberg.commit import commit_batch
from tests.chaos.history import installed, run_history
from tests.chaos.injection import Actor, Fault, Killed, call_with_faults, fault_space
from tests.chaos.inline_spark import Worker
from tests.chaos.world import Clients, clients
from transform.spark_job import JobFailedError

EVERY = 29
"""One fault in this number is played here; each night 320 histories follow, with other inputs."""
JOB_FAILS = Mock(side_effect=JobFailedError("every job fails"))
IDS_AND_TIMES = re.compile(r"\d{8}T[0-9a-f]+|[0-9a-f]{16,}|in [0-9.]+ s")


@pytest.fixture(scope="module")
def shared(cloud: LocalCloud) -> Iterator[Clients]:
    os.environ.setdefault("POWERTOOLS_METRICS_NAMESPACE", "chaos")
    with installed():
        yield clients()


def test_every_line_is_published_once_under_faults_of_every_kind(shared: Clients) -> None:
    seeds = range(0, len(fault_space()), EVERY)
    fired = unpublished = inputs = 0
    for seed in seeds:
        report = run_history(shared, seed)
        assert not report.violations, f"make chaos SEED={seed}: {report.violations}\n" + "\n".join(report.log)
        fired += len(report.fired)
        unpublished += report.unpublished
        inputs += report.inputs
    assert fired >= len(seeds) // 2
    assert unpublished < inputs // 2, f"{unpublished} of {inputs} inputs were in FAILED manifests"


def test_the_same_seed_gives_the_same_history(shared: Clients) -> None:
    seed = fault_space().index(("commit", "before", "stall"))
    first, second = run_history(shared, seed), run_history(shared, seed)
    assert not first.violations, "\n".join(first.log)
    assert first.fired
    assert first.fired == second.fired
    assert [IDS_AND_TIMES.sub("", line) for line in first.log] == [IDS_AND_TIMES.sub("", line) for line in second.log]


def test_a_killed_driver_has_no_worker_that_sends_requests() -> None:
    driver = Actor("batch-1", (), {})
    with pytest.raises(Killed):
        driver.kill(Fault("claim", "before", 1, "kill"))
    with pytest.raises(Killed):
        call_with_faults(Worker(driver), "upload part", "", "UploadPart", Mock(side_effect=AssertionError))


def seeds_of(point: str) -> list[int]:
    return [seed for seed, (name, _, _) in enumerate(fault_space()) if name == point]


@pytest.mark.parametrize("point", ["collection row", "supersede", "fail"])
def test_a_step_that_is_a_transaction_is_a_separate_point(shared: Clients, point: str) -> None:
    fired = (fault.point for seed in seeds_of(point) for fault in run_history(shared, seed).fired)
    assert point in fired


def violations(shared: Clients, seeds: list[int]) -> list[str]:
    """The violations of the first history that has any."""
    for seed in seeds:
        report = run_history(shared, seed)
        if report.violations:
            return list(report.violations)
    return []


def supersede_nothing(self: Manifests, _sources: object, successors: Any, _reason: str, _now: object) -> bool:
    return all(self.enqueue(row) == State.QUEUED for row in successors)


def commit_nothing(metadata: Any, files: Any, batch: Any, *times: int) -> Any:
    return commit_batch(metadata, files, replace(batch, add=()), *times)


@pytest.mark.parametrize(
    ("point", "place", "other", "message"),
    [
        ("partition row", "transform.spark_job.SparkJob.run", JOB_FAILS, "FAILED without a cause"),
        ("supersede", "lake.ledger.transitions.Manifests.supersede", supersede_nothing, ""),
        ("commit", "lake.publish.complete_all", lambda *_: defaultdict(str), ""),
        ("upload part", "router.sweep.leftovers.may_abort", lambda *_: False, ""),
        ("table mark", "router.tables.committer.commit_batch", commit_nothing, "the table does not show it"),
    ],
)
def test_a_removed_rule_is_detected(
    shared: Clients, monkeypatch: pytest.MonkeyPatch, point: str, place: str, other: object, message: str
) -> None:
    monkeypatch.setattr(place, other)
    found = violations(shared, seeds_of(point))
    assert found
    assert message in " ".join(found)
