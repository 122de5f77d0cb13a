"""Engines: where job runs are. Each file of an engine says everything about it; ``ENGINES`` describes all of them.

Job runs are named by the ids by which they hold leases; the service that runs them is asked.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from lake.engines.description import Bill, Engine, EngineDescription, StreamRuns, Units
from lake.engines.emr_serverless import EMR_SERVERLESS
from lake.engines.glue import GLUE, GLUE_FLEX

Clients = Mapping[str, Any]
ENGINES: Mapping[str, EngineDescription] = {item.name: item for item in (GLUE_FLEX, GLUE, EMR_SERVERLESS)}
"""By name, as settings have it."""


def engine_of_run(run: str) -> EngineDescription:
    """An engine of the service that has the job run of this id; an id without a prefix is one of Glue."""
    return max((item for item in ENGINES.values() if run.startswith(item.run_prefix)), key=lambda item: item.run_prefix)


def services_of(engines: Iterable[str]) -> list[str]:
    """The services that run jobs on these engines, each once, by their names in boto3."""
    return list(dict.fromkeys(ENGINES[name].service for name in engines))


def run_is_terminal(clients: Clients, jobs: Iterable[str], run: str) -> bool:
    """Whether ``run``, one of ``jobs`` of this stage, has ended.

    False for a run that its service does not know, or whose service has no client: then its lease alone decides.
    Raises botocore's errors.
    """
    engine = engine_of_run(run)
    client = clients.get(engine.service)
    return client is not None and engine.has_ended(client, jobs, run)


def read_bill(clients: Clients, job: str, run: str, document: str | None = None) -> Bill | None:
    """What ``run``, one of ``job``, has used.

    None: its service does not know it or has no client, or it has not ended. With ``document``, the URI of a run
    document, also None for a run that was started for another one. Raises botocore's errors.
    """
    engine = engine_of_run(run)
    client = clients.get(engine.service)
    bill = None if client is None else engine.bill(client, job, run)
    return bill if bill is not None and document in (None, bill.run) else None
