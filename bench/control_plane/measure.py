"""``python -m bench.control_plane.measure plan A10 http://127.0.0.1:1``: one function, its figures as JSON."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from bench.peak_memory import peak_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.control_plane.night import Night
    from router.services import Services

EXECUTION = "night"


def main(function: str, night_name: str, endpoint: str) -> None:
    """Call the function as Lambda does, without its handler's logging; the last line of the output has its figures."""
    names = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "eu-central-1"}
    os.environ |= {**names, "AWS_DEFAULT_REGION": "eu-central-1", "AWS_ENDPOINT_URL": endpoint}
    os.environ |= {"POWERTOOLS_METRICS_NAMESPACE": "bench", "POWERTOOLS_LOG_LEVEL": "ERROR"}
    from bench.control_plane.night import NIGHTS  # noqa: PLC0415
    from router.telemetry import logger  # noqa: PLC0415

    logger.setLevel(logging.CRITICAL)
    night = NIGHTS[night_name]
    call = _call(function, night, _services())
    started, cpu = time.monotonic(), time.process_time()
    answer = call()
    figures = {
        "seconds": time.monotonic() - started,
        "cpu_seconds": time.process_time() - cpu,
        "peak_bytes": peak_bytes(),
        "answer": answer,
    }
    print(json.dumps(figures, default=str))


def _services() -> Services:
    import boto3  # noqa: PLC0415

    from bench.control_plane.night import NOW, RESOURCES  # noqa: PLC0415
    from lake.ledger import Ledger  # noqa: PLC0415
    from lake.settings import Settings  # noqa: PLC0415
    from router.services import CLIENT_CONFIG, Services  # noqa: PLC0415

    started = time.monotonic()
    dynamodb = boto3.resource("dynamodb", config=CLIENT_CONFIG)
    return Services(
        settings=Settings(stage="bench"),
        resources=RESOURCES,
        ledger=Ledger.over(dynamodb.meta.client, RESOURCES.ledger_table),
        s3=boto3.client("s3", config=CLIENT_CONFIG),
        glue=boto3.client("glue", config=CLIENT_CONFIG),
        clock=lambda: NOW + timedelta(seconds=time.monotonic() - started),
    )


def _call(function: str, night: Night, services: Services) -> Callable[[], Any]:
    from bench.control_plane.night import START  # noqa: PLC0415
    from lake.layout import run_key  # noqa: PLC0415
    from router.backfill.handler import backfill  # noqa: PLC0415
    from router.catalog.handler import catalog  # noqa: PLC0415
    from router.plan.handler import plan  # noqa: PLC0415
    from router.run_status.handler import run_status  # noqa: PLC0415
    from router.sweep.handler import sweep  # noqa: PLC0415

    hour = f"{START:%Y-%m-%dT%H}"
    request = {"dataset": night.dataset_names()[0], "from": hour, "to": hour}
    run = f"s3://{services.resources.control_bucket}/{run_key(EXECUTION, 0)}"
    calls: dict[str, Callable[[], Any]] = {
        "plan": lambda: plan({"execution": EXECUTION}, services),
        "run_status": lambda: run_status({"run": run}, services),
        "catalog": lambda: catalog(services),
        "sweep": lambda: sweep(services),
        "backfill": lambda: backfill({"action": "find", "request": request, "token": None}, services),
    }
    return calls[function]


if __name__ == "__main__":
    main(*sys.argv[1:])
