"""EMR Serverless as an engine of the batch lane: the application, the role of its job runs, and what starts one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_emrserverless as emrserverless
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.allow import allow
from infra.jobs import SPARK_SETTINGS, event_logs_uri
from infra.log_groups import add_log_group
from lake.settings.workers import MEMORY_GIB, WORKERS

if TYPE_CHECKING:
    from infra.assets import Assets
    from infra.names import StackNames
    from lake.resource_names import ResourceNames
    from lake.settings import Settings

RELEASE = "emr-spark-8.1.0"
"""Spark 4.1.1, as on Glue 6.0; Python 3.11 unless another one is asked for
(https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-version-emr-spark-8.1.0.html)."""
IDLE_MINUTES = 5
"""An application without capacity that is initialized in advance costs nothing while it is idle."""
QUEUE_MINUTES = 720
"""How long a job run waits for room, at most; the longest that EMR Serverless allows."""
HEAP_SIXTEENTHS = 10
"""Share of a worker's memory that the JVM gets, in sixteenths: as on Glue (``lake.settings.workers``)."""
LIBRARIES = "libraries"
"""The folder into which Spark unpacks the archive, beside the driver and beside each executor."""
NO_LOG_URI = "none"
"""In the state machine of a stage whose settings keep no event logs."""
NOT_DEPLOYED = "not-deployed"
"""In the state machine of a stage whose settings do not allow this engine: no run of a plan names it."""


class EmrServerless(Construct):
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
        super().__init__(scope, name)
        self._settings = settings
        self._assets = assets
        self.log = add_log_group(self, "Log", f"/aws/emr-serverless/{names.stack}")
        """What drivers and executors print."""
        self.application = self._create_application(names)
        self.role = self._create_role()
        self.substitutions = {
            "EmrApplication": self.application.attr_application_id,
            "EmrRole": self.role.role_arn,
            "EmrEntryPoint": assets.batch_script.s3_object_url,
            "EmrArguments": self._arguments(resources),
            "EmrSparkSubmitParameters": self._spark_submit_parameters(),
            "EmrLogGroup": self.log.log_group_name,
            "EmrLogUri": event_logs_uri(resources.control_bucket) if settings.spark.ui_logs else NO_LOG_URI,
            # EMR keeps event logs for its Spark UI in a place of its own, under a key of its own.
            "EmrKeepsEventLogs": "no" if settings.encryption.kms_key else "yes",
        }
        """Placeholder of the state machine -> value."""

    @property
    def job_runs_arn(self) -> str:
        """The ARNs of all job runs of the application."""
        return f"{self.application.attr_arn}/jobruns/*"

    def _create_application(self, names: StackNames) -> emrserverless.CfnApplication:
        batch, max_vcpus = self._settings.batch, self._settings.emr.max_vcpus
        vcpus, gib = WORKERS[batch.worker_type], MEMORY_GIB[batch.worker_type]
        application = emrserverless.CfnApplication
        return application(
            self,
            "Application",
            name=names.batch_job,
            release_label=RELEASE,
            type="SPARK",
            architecture=self._settings.emr.architecture.upper(),
            auto_start_configuration=application.AutoStartConfigurationProperty(enabled=True),
            auto_stop_configuration=application.AutoStopConfigurationProperty(
                enabled=True, idle_timeout_minutes=IDLE_MINUTES
            ),
            maximum_capacity=application.MaximumAllowedResourcesProperty(
                cpu=f"{max_vcpus} vCPU", memory=f"{max_vcpus // vcpus * gib} GB"
            ),
            scheduler_configuration=application.SchedulerConfigurationProperty(
                # A run that got only a part of its workers would take longer and cost as much.
                max_concurrent_runs=self._settings.max_emr_runs,
                queue_timeout_minutes=QUEUE_MINUTES,
            ),
        )

    def _create_role(self) -> iam.Role:
        account = Stack.of(self).account
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "emr-serverless.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": account}}
            ),
        )
        self._assets.grant_read(role)
        allow(
            role,
            ("logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"),
            [self.log.log_group_arn],
            "EMR Serverless names the streams of a log group after the application and the job run.",
        )
        # https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/logging.html
        allow(role, ("logs:DescribeLogGroups",), ["*"], "The action lists all log groups and has no resource.")
        return role

    def _arguments(self, resources: ResourceNames) -> str:
        """Arguments of the script, the same as on Glue. None of them contains a space, at which the machine splits."""
        own = {"--settings": self._assets.settings.s3_object_url, "--region": Stack.of(self).region}
        return " ".join(word for pair in {**resources.to_arguments(), **own}.items() for word in pair)

    def _spark_submit_parameters(self) -> str:
        batch = self._settings.batch
        heap = MEMORY_GIB[batch.worker_type] * HEAP_SIXTEENTHS // 16
        properties = {
            **SPARK_SETTINGS,
            "spark.submit.pyFiles": self._assets.job_code.s3_object_url,
        }
        if self._assets.emr_libraries is not None:
            properties["spark.archives"] = f"{self._assets.emr_libraries.s3_object_url}#{LIBRARIES}"
            properties["spark.emr-serverless.driverEnv.PYTHONPATH"] = f"./{LIBRARIES}"
            properties["spark.executorEnv.PYTHONPATH"] = f"./{LIBRARIES}"
        for part in ("driver", "executor"):
            properties[f"spark.{part}.cores"] = str(WORKERS[batch.worker_type])
            properties[f"spark.{part}.memory"] = f"{heap}g"
            properties[f"spark.{part}.memoryOverhead"] = f"{MEMORY_GIB[batch.worker_type] - heap}g"
        return " ".join(f"--conf {key}={value}" for key, value in properties.items())
