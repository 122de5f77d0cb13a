"""Engines: the services on which job runs execute. Each file describes one service; ``ENGINES`` has all engines.

A job run is named by the id by which it holds leases. The prefix of the id shows which service to ask.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from lake.engines.description import Bill, Engine, EngineDescription, StreamRuns, Units
from lake.engines.emr_serverless import EMR_SERVERLESS
from lake.engines.glue import GLUE, GLUE_FLEX

Clients = Mapping[str, Any]
ENGINES: Mapping[str, EngineDescription] = {item.name: item for item in (GLUE_FLEX, GLUE, EMR_SERVERLESS)}
"""By name, as in the settings."""


def engine_of_run(run: str) -> EngineDescription:
    """An engine of the service that has the job run with this id; an id without a prefix belongs to Glue."""
    return max((item for item in ENGINES.values() if run.startswith(item.run_prefix)), key=lambda item: item.run_prefix)


def services_of(engines: Iterable[str]) -> list[str]:
    """The services of these engines, each once, by their names in boto3."""
    return list(dict.fromkeys(ENGINES[name].service for name in engines))


def run_is_terminal(clients: Clients, jobs: Iterable[str], run: str) -> bool:
    """Whether ``run``, a run of one of the ``jobs`` of this stage, has ended.

    False if its service does not know the run or has no client here: its lease alone decides then. Raises botocore's
    errors.
    """
    engine = engine_of_run(run)
    client = clients.get(engine.service)
    return client is not None and engine.has_ended(client, jobs, run)


def read_bill(clients: Clients, job: str, run: str, document: str | None = None) -> Bill | None:
    """What ``run``, a run of ``job``, has used.

    None if it has not ended, or if its service does not know it or has no client here. With ``document``, the URI of a
    run document, also None for a run that was started for another document. Raises botocore's errors.
    """
    engine = engine_of_run(run)
    client = clients.get(engine.service)
    bill = None if client is None else engine.bill(client, job, run)
    return bill if bill is not None and document in (None, bill.run) else None
