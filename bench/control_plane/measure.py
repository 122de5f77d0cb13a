"""Measures the time, processor time and memory of one function of the control plane on a night."""

import json
import logging
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from bench.control_plane.night import NIGHTS, NOW, RESOURCES, START, Night
from lake.documents import get_document
from lake.layout import plan_summary_key
from lake.ledger import CollectionId, Ledger
from lake.settings import Settings
from router.catalog.handler import catalog
from router.divide import divide
from router.executions.run_status import run_status
from router.plan.handler import plan
from router.requests.backfill import backfill
from router.services import CLIENT_CONFIG, Services, new_session, read_document
from router.settle.handler import settle
from router.sweep.handler import TIME_PER_SWEEP, sweep
from router.sweep.hours import announce_hours
from router.sweep.repair import Repair
from router.telemetry import logger
from sizing.peak_memory import peak_bytes

EXECUTION = "night"


def measure(function: str, night: str, endpoint: str) -> tuple[float, float, int]:
    """Call the function as its handler does; return seconds, seconds of processor time, and peak memory in bytes."""
    # Functions of up to 1,769 MB have one vCPU at most: with two cores, threads that compete for the interpreter's lock
    # take up to twice the processor time.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.environ["POWERTOOLS_METRICS_NAMESPACE"] = "bench"
    logger.setLevel(logging.CRITICAL)
    call = calls(NIGHTS[night], connect(endpoint))[function]
    started, cpu = time.monotonic(), time.process_time()
    answer = call()
    used = time.monotonic() - started, time.process_time() - cpu, peak_bytes()
    assert function != "settle" or answer["verdict"] == "SUCCEEDED", answer
    return used


def connect(endpoint: str) -> Services:
    """The services of a Lambda function, with default settings, clients of the stand-in, and the night's clock."""
    session: Any = new_session()
    # The stand-in verifies no signature.
    place: dict[str, Any] = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "eu-central-1"}
    place |= {"endpoint_url": endpoint, "config": CLIENT_CONFIG}
    started = time.monotonic()
    return Services(
        settings=Settings(stage="bench"),
        resources=RESOURCES,
        ledger=Ledger.over(session.resource("dynamodb", **place).meta.client, RESOURCES.ledger_table),
        s3=session.client("s3", **place),
        glue=session.client("glue", **place),
        events=session.client("events", **place),
        clock=lambda: NOW + timedelta(seconds=time.monotonic() - started),
    )


def calls(night: Night, services: Services) -> dict[str, Callable[[], Any]]:
    """The functions by name; ``run_status`` looks at the first run of the plan, ``backfill`` at the first hour."""
    hour = f"{START:%Y-%m-%dT%H}"
    request = {"dataset": night.dataset_names()[0], "from": hour, "to": hour}

    def first_status() -> object:
        index = read_document(services, plan_summary_key(EXECUTION))["index"]
        return run_status(
            {"run": json.loads(get_document(services.s3, index["bucket"], index["key"]))[0]["run"]}, services
        )

    return {
        "plan": lambda: plan({"execution": EXECUTION}, services),
        "run_status": first_status,
        "catalog": lambda: catalog(services),
        "divide": lambda: divide(services, CollectionId.numbered(night.last_hour, 1)),
        "sweep": lambda: sweep(services),
        "hours": lambda: _announce_hours(services),
        "settle": lambda: settle({"execution": EXECUTION}, services),
        "backfill": lambda: backfill({"action": "find", "request": request, "token": None}, services),
    }


def _announce_hours(services: Services) -> dict[str, int]:
    """Announce the hours whose manifests are DONE, once they have been quiet."""
    late = replace(services, clock=lambda: services.clock() + timedelta(hours=1))
    repair = Repair(late, late.clock() + TIME_PER_SWEEP)
    announce_hours(repair)
    if repair.errors:
        raise repair.errors[0]
    return dict(repair.counts)
