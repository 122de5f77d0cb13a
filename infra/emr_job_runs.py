"""What job runs on EMR Serverless have in common in both lanes: application, role, arguments, Spark's properties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_emrserverless as emrserverless
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.allow import allow
from infra.jobs import SPARK_SETTINGS
from infra.log_groups import add_log_group
from lake.engines.emr_serverless import heap_gb

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_cdk import aws_logs as logs

    from infra.assets import Assets
    from lake.resource_names import ResourceNames
    from lake.settings import Settings

RELEASE = "emr-spark-8.1.0"
"""Spark 4.1.1, as on Glue 6.0; Python 3.11 unless another one is asked for
(https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-version-emr-spark-8.1.0.html)."""
IDLE_MINUTES = 5
"""An application without capacity that is initialized in advance costs nothing while it is idle."""
QUEUE_MINUTES = 720
"""How long a job run waits for room, at most; the longest that EMR Serverless allows."""
LIBRARIES = "libraries"
"""The folder into which Spark unpacks the archive, beside the driver and beside each executor."""
PASSED_TO_EMR = {"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}}
"""The condition under which the role of job runs is passed."""
ANY_EMR_RUN = "A job run gets its id when it starts."
"""Why a statement names all job runs of an application."""


@dataclass(frozen=True, slots=True)
class WorkerSize:
    """The driver, or an executor."""

    vcpus: int
    gigabytes: int


@dataclass(frozen=True, slots=True)
class MaximumCapacity:
    """What all job runs of an application may use at the same time."""

    vcpus: int
    gigabytes: int
    runs: int


class EmrApplication(Construct):
    """The application of one lane, the role of its job runs, and the log group in which they write."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        job: str,
        log: str,
        settings: Settings,
        assets: Assets,
        capacity: MaximumCapacity,
    ) -> None:
        super().__init__(scope, name)
        self.log = add_log_group(self, "Log", log)
        """What drivers and executors print."""
        self.application = _create_application(self, job, settings.emr.architecture, capacity)
        self.role = _create_role(self, assets, self.log)
        self.keeps_event_logs = not settings.encryption.kms_key
        """EMR keeps event logs for its Spark UI in a place of its own, under a key of its own."""

    @property
    def job_runs_arn(self) -> str:
        """The ARNs of all job runs of the application."""
        return f"{self.application.attr_arn}/jobruns/*"


def script_arguments(assets: Assets, resources: ResourceNames, region: str) -> str:
    """Arguments of the scripts, the same as on Glue, with a space between two. None of them contains one."""
    own = {"--settings": assets.settings.s3_object_url, "--region": region}
    return " ".join(word for pair in {**resources.to_arguments(), **own}.items() for word in pair)


def spark_submit_parameters(
    assets: Assets, driver: WorkerSize, executor: WorkerSize, more: Mapping[str, str] | None = None
) -> str:
    """Spark's properties; ``more`` are those of one lane."""
    properties = {**SPARK_SETTINGS, "spark.submit.pyFiles": assets.job_code.s3_object_url}
    if assets.emr_libraries is not None:
        properties["spark.archives"] = f"{assets.emr_libraries.s3_object_url}#{LIBRARIES}"
        properties["spark.emr-serverless.driverEnv.PYTHONPATH"] = f"./{LIBRARIES}"
        properties["spark.executorEnv.PYTHONPATH"] = f"./{LIBRARIES}"
    for part, size in (("driver", driver), ("executor", executor)):
        heap = heap_gb(size.gigabytes)
        properties[f"spark.{part}.cores"] = str(size.vcpus)
        properties[f"spark.{part}.memory"] = f"{heap}g"
        properties[f"spark.{part}.memoryOverhead"] = f"{size.gigabytes - heap}g"
    return " ".join(f"--conf {key}={value}" for key, value in {**properties, **(more or {})}.items())


def _create_application(
    scope: Construct, name: str, architecture: str, capacity: MaximumCapacity
) -> emrserverless.CfnApplication:
    """An application that starts with a job run and stops when it is idle; further runs wait in its queue."""
    application = emrserverless.CfnApplication
    return application(
        scope,
        "Application",
        name=name,
        release_label=RELEASE,
        type="SPARK",
        architecture=architecture.upper(),
        auto_start_configuration=application.AutoStartConfigurationProperty(enabled=True),
        auto_stop_configuration=application.AutoStopConfigurationProperty(
            enabled=True, idle_timeout_minutes=IDLE_MINUTES
        ),
        maximum_capacity=application.MaximumAllowedResourcesProperty(
            cpu=f"{capacity.vcpus} vCPU", memory=f"{capacity.gigabytes} GB"
        ),
        scheduler_configuration=application.SchedulerConfigurationProperty(
            # A run that got only a part of its workers would take longer and cost as much.
            max_concurrent_runs=capacity.runs,
            queue_timeout_minutes=QUEUE_MINUTES,
        ),
    )


def _create_role(scope: Construct, assets: Assets, log: logs.LogGroup) -> iam.Role:
    """The role of the job runs: so far it reads its code and writes its log."""
    role = iam.Role(
        scope,
        "Role",
        assumed_by=iam.ServicePrincipal(
            "emr-serverless.amazonaws.com",
            conditions={"StringEquals": {"aws:SourceAccount": Stack.of(scope).account}},
        ),
    )
    assets.grant_read(role)
    allow(
        role,
        ("logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"),
        [log.log_group_arn],
        "EMR Serverless names the streams of a log group after the application and the job run.",
    )
    # https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/logging.html
    allow(role, ("logs:DescribeLogGroups",), ["*"], "The action lists all log groups and has no resource.")
    return role
