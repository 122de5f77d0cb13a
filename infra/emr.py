"""EMR Serverless as an engine of the batch lane: the application, the role of its job runs, and what starts one."""

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
from infra.jobs import event_logs_uri
from lake.engines.workers import MEMORY_GIB, WORKERS

if TYPE_CHECKING:
    from constructs import Construct

    from infra.assets import Assets
    from infra.names import StackNames
    from lake.resource_names import ResourceNames
    from lake.settings import Settings

NO_LOG_URI = "none"
"""In the state machine of a stage whose settings keep no event logs."""
NOT_DEPLOYED = "not-deployed"
"""In the state machine of a stage whose settings do not allow this engine: no run of a plan names it."""


class EmrServerless(EmrApplication):
    """One application for all runs; it starts with the first of them, and stops when it is idle."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        settings: Settings,
        names: StackNames,
        assets: Assets,
        resources: ResourceNames,
    ) -> None:
        worker_type, max_vcpus = settings.batch.worker_type, settings.emr.max_vcpus
        worker = WorkerSize(WORKERS[worker_type], MEMORY_GIB[worker_type])
        super().__init__(
            scope,
            name,
            job=names.batch_job,
            log=f"/aws/emr-serverless/{names.stack}",
            settings=settings,
            assets=assets,
            capacity=MaximumCapacity(max_vcpus, max_vcpus // worker.vcpus * worker.gigabytes, settings.max_emr_runs),
        )
        self.substitutions = {
            "EmrApplication": self.application.attr_application_id,
            "EmrRole": self.role.role_arn,
            "EmrEntryPoint": assets.batch_script.s3_object_url,
            "EmrArguments": script_arguments(assets, resources, Stack.of(self).region),
            "EmrSparkSubmitParameters": spark_submit_parameters(assets, worker, worker),
            "EmrLogGroup": self.log.log_group_name,
            "EmrLogUri": event_logs_uri(resources.control_bucket) if settings.spark.ui_logs else NO_LOG_URI,
            "EmrKeepsEventLogs": "yes" if self.keeps_event_logs else "no",
        }
        """Placeholder of the state machine -> value."""
