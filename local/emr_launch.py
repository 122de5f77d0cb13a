"""What EMR Serverless runs for a request: script, modules, arguments and Spark's properties; and what it refuses."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lake.engines.emr_serverless import APPLICATION_VARIABLE, JOB_RUN_VARIABLE
from lake.engines.stream_launch import STREAMING
from local.errors import ServiceError
from local.job_launch import JobLaunch

if TYPE_CHECKING:
    from collections.abc import Mapping

EXECUTORS = "spark.dynamicAllocation.maxExecutors"
MODULES = "spark.submit.pyFiles"
NOT_ALLOWED = ("spark.master",)
"""Seen in reports of users: the service answers "Option 'spark.master' is not supported"."""
OF_THE_CLUSTER = (
    "spark.driver.",
    "spark.executor.",
    "spark.executorEnv.",
    "spark.dynamicAllocation.",
    "spark.emr-serverless.",
    "spark.submit.",
    "spark.archives",
)
"""Properties that say how a cluster looks; here a run is one process of Spark."""
WORKERS = {1: (2, 8, 1), 2: (4, 16, 1), 4: (8, 30, 1), 8: (16, 60, 4), 16: (32, 120, 8)}
"""vCPUs of a worker -> smallest and largest memory in GB, and the increment (Amazon EMR Serverless User Guide,
"Supported worker configurations")."""
DEFAULT_CORES, DEFAULT_MEMORY_GB, DEFAULT_EXECUTORS = 4, 14, 3
"""Amazon EMR Serverless User Guide, "Spark job properties"; its default number of executors has no upper limit."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """vCPUs and memory of all workers of a run."""

    vcpus: int
    gigabytes: int


def spark_properties(request: Mapping[str, Any]) -> dict[str, str]:
    """The properties of a request's ``sparkSubmitParameters``.

    Raises
    ------
    ServiceError
        ``ValidationException``: there is an option that the service, or the local cloud, does not support.
    """
    words = shlex.split(_spark_submit(request).get("sparkSubmitParameters", ""))
    properties = {}
    while words:
        option = words.pop(0)
        key, equals, value = (words.pop(0) if option == "--conf" and words else "").partition("=")
        if not equals or key in NOT_ALLOWED:
            raise ServiceError("ValidationException", f"Option '{key or option}' is not supported")
        properties[key] = value
    return properties


def needed_capacity(properties: Mapping[str, str]) -> Capacity:
    """What a run uses with all of its executors.

    Raises
    ------
    ServiceError
        ``ValidationException``: there is no worker of this size.
    """
    driver, executor = _worker(properties, "driver"), _worker(properties, "executor")
    executors = int(properties.get(EXECUTORS, DEFAULT_EXECUTORS))
    return Capacity(driver.vcpus + executors * executor.vcpus, driver.gigabytes + executors * executor.gigabytes)


def emr_launch(request: Mapping[str, Any], environment: Mapping[str, str], attempt: int) -> JobLaunch:
    """What a run of the request starts; ``environment``: what the service tells a driver about itself."""
    properties = spark_properties(request)
    return JobLaunch(
        script=_spark_submit(request)["entryPoint"],
        modules=tuple(uri for uri in properties.get(MODULES, "").split(",") if uri),
        spark={key: value for key, value in properties.items() if not key.startswith(OF_THE_CLUSTER)},
        arguments=tuple(_spark_submit(request).get("entryPointArguments", ())),
        environment=environment,
        event_logs=_event_logs(request, environment, attempt),
    )


def _event_logs(request: Mapping[str, Any], environment: Mapping[str, str], attempt: int) -> str:
    """Below the URI of the request, as https://github.com/aws-samples/emr-serverless-samples (utilities/spark-ui).

    Those of a streaming run are in a folder of their attempt (Amazon EMR Serverless User Guide, "Job resiliency").
    """
    monitoring = (request.get("configurationOverrides") or {}).get("monitoringConfiguration") or {}
    uri = (monitoring.get("s3MonitoringConfiguration") or {}).get("logUri", "")
    run = f"applications/{environment[APPLICATION_VARIABLE]}/jobs/{environment[JOB_RUN_VARIABLE]}"
    of_attempt = f"/attempts/{attempt}" if request.get("mode") == STREAMING else ""
    return f"{uri.rstrip('/')}/{run}{of_attempt}/sparklogs/" if uri else ""


def _spark_submit(request: Mapping[str, Any]) -> Mapping[str, Any]:
    driver: Mapping[str, Any] = (request.get("jobDriver") or {}).get("sparkSubmit") or {}
    if not driver.get("entryPoint"):
        raise ServiceError("ValidationException", "jobDriver.sparkSubmit.entryPoint is missing")
    return driver


def _worker(properties: Mapping[str, str], part: str) -> Capacity:
    cores = int(properties.get(f"spark.{part}.cores", DEFAULT_CORES))
    heap = properties.get(f"spark.{part}.memory")
    overhead = properties.get(f"spark.{part}.memoryOverhead", "0g")
    memory = DEFAULT_MEMORY_GB if heap is None else _gigabytes(heap) + _gigabytes(overhead)
    smallest, largest, step = WORKERS.get(cores, (1, 0, 1))
    if not smallest <= memory <= largest or (memory - smallest) % step:
        message = f"There is no worker with {cores} vCPU and {memory} GB for the {part}"
        raise ServiceError("ValidationException", message)
    return Capacity(cores, memory)


def _gigabytes(size: str) -> int:
    if not size.endswith("g"):
        raise ServiceError("ValidationException", f"The local cloud reads sizes such as 10g only, not {size}")
    return int(size.removesuffix("g"))
