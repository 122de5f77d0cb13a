"""EMR Serverless as the engine of the stream lane: an application of its own, so that no night takes its vCPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack

from infra.emr_job_runs import (
    EmrApplication,
    MaximumCapacity,
    WorkerSize,
    script_arguments,
    spark_submit_parameters,
)
from infra.jobs import STREAM_TIMEOUT_MINUTES, event_logs_uri
from lake.engines.emr_serverless import DRIVER_GB, DRIVER_VCPUS
from lake.engines.stream_launch import STREAM_LAUNCH, StreamLaunch, stream_log_group
from lake.engines.workers import MEMORY_GIB, WORKERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constructs import Construct

    from infra.assets import Assets
    from infra.functions import RouterFunction
    from infra.names import StackNames
    from lake.resource_names import ResourceNames
    from lake.settings import Settings, StreamSettings

STARTERS = ("route", "promote", "sweep", "stream_control")
"""The functions that start a streaming run."""


class EmrStream(EmrApplication):
    """One application for the runs of all shards; it starts with the first of them, and stops when it is idle."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        settings: Settings,
        names: StackNames,
        assets: Assets,
        resources: ResourceNames,
    ) -> None:
        stream, runs = settings.stream, settings.stream_runs
        super().__init__(
            scope,
            name,
            job=names.stream_job,
            log=stream_log_group(names.stack),
            settings=settings,
            assets=assets,
            capacity=MaximumCapacity(settings.stream_vcpus, int(runs * stream.units.gb), runs),
        )
        driver = WorkerSize(DRIVER_VCPUS, DRIVER_GB)
        executor = WorkerSize(WORKERS[stream.worker_type], MEMORY_GIB[stream.worker_type])
        self._launch = StreamLaunch(
            application=self.application.attr_application_id,
            role=self.role.role_arn,
            entry_point=assets.stream_script.s3_object_url,
            arguments=script_arguments(assets, resources, Stack.of(self).region),
            spark_submit_parameters=spark_submit_parameters(assets, driver, executor, _scaling(stream)),
            timeout_minutes=STREAM_TIMEOUT_MINUTES,
            log_group=self.log.log_group_name,
            log_uri=event_logs_uri(resources.control_bucket) if settings.spark.ui_logs else "",
            keeps_event_logs=self.keeps_event_logs,
        )

    def tell(self, functions: Mapping[str, RouterFunction]) -> None:
        """Let the functions that start a streaming run know how."""
        for name in STARTERS:
            functions[name].function.add_environment(STREAM_LAUNCH, self._launch.to_text())


def _scaling(stream: StreamSettings) -> dict[str, str]:
    """Executors come and go with the tasks; without these properties a run would begin with three of them."""
    first = max(1, stream.emr_min_executors)
    return {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(stream.emr_min_executors),
        "spark.dynamicAllocation.maxExecutors": str(stream.max_workers - 1),
        # The first files find one while the driver is alone later.
        "spark.dynamicAllocation.initialExecutors": str(first),
        "spark.executor.instances": str(first),
    }
