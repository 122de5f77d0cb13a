"""EMR Serverless as an engine: an application for each lane that uses it, the role of its runs, and their launch."""

from collections.abc import Iterable, Mapping

from aws_cdk import Stack
from aws_cdk import aws_emrserverless as emrserverless
from aws_cdk import aws_iam as iam
from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from infra.allow import allow, create_role
from infra.assets import Assets
from infra.functions import RouterFunction
from infra.jobs import SPARK_SETTINGS, STREAM_TIMEOUT_MINUTES, USE_RULE, JobParts, event_logs_uri
from infra.log_groups import add_log_group
from lake.engines.description import MEMORY_GIB, WORKERS
from lake.engines.emr_serverless import (
    DRIVER_GB,
    DRIVER_VCPUS,
    EmrLaunch,
    heap_gb,
    log_group,
    stream_log_group,
)
from lake.resource_names import ResourceNames
from lake.settings import StreamSettings

RELEASE = "emr-spark-8.1.0"
"""Spark 4.1.1, as on Glue 6.0; Python 3.11 by default
(https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-version-emr-spark-8.1.0.html)."""
IDLE_MINUTES = 5
"""An application without capacity that is initialized in advance costs nothing while it is idle."""
QUEUE_MINUTES = 720
"""Maximum time for which a job run waits for room; the longest that EMR Serverless allows."""
LIBRARIES = "libraries"
"""The folder into which Spark unpacks the archive, next to the driver and to each executor."""
PASSED = {"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}}
"""The condition under which the role of job runs is passed."""
ANY_RUN = "A job run gets its id when it starts."
"""Why a statement names all job runs of an application."""

NO_LOG_URI = "none"
"""Value in the state machine of a stage whose settings keep no event logs."""
NOT_DEPLOYED = "not-deployed"
"""Value in the state machine of a stage whose settings do not allow this engine: no run of a plan names the engine."""
RUN_RULE = "StepFunctionsGetEventsForEMRServerlessJobRule"
"""The EventBridge rule by which Step Functions learns of the end of a job run; AWS fixes its name
(https://docs.aws.amazon.com/step-functions/latest/dg/connect-emr-serverless.html, IAM policies).
"""
STARTERS = ("route", "promote", "sweep", "stream_control")
"""The functions that start a streaming run."""


class EmrApplication(Construct):
    """The application of one lane, the role of its job runs, and the log group in which they write."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        job: str,
        log: str,
        parts: JobParts,
        vcpus: int,
        gigabytes: int,
        runs: int,
        script: Asset,
        spark_submit_parameters: str,
        timeout_minutes: int,
    ) -> None:
        """``vcpus``, ``gigabytes``, ``runs`` limit all job runs together. The other parameters are those of
        ``EmrLaunch``.
        """
        super().__init__(scope, name)
        settings, assets, resources = parts.settings, parts.assets, parts.resources
        self.log = add_log_group(self, "Log", log)
        application = emrserverless.CfnApplication
        self.application = application(
            self,
            "Application",
            name=job,
            release_label=RELEASE,
            type="SPARK",
            architecture=settings.emr.architecture.upper(),
            auto_start_configuration=application.AutoStartConfigurationProperty(enabled=True),
            auto_stop_configuration=application.AutoStopConfigurationProperty(
                enabled=True, idle_timeout_minutes=IDLE_MINUTES
            ),
            maximum_capacity=application.MaximumAllowedResourcesProperty(cpu=f"{vcpus} vCPU", memory=f"{gigabytes} GB"),
            scheduler_configuration=application.SchedulerConfigurationProperty(
                # A run with only a part of its workers would take longer and cost as much.
                max_concurrent_runs=runs,
                queue_timeout_minutes=QUEUE_MINUTES,
            ),
        )
        """It starts with a job run and stops when it is idle; further runs wait in its queue."""
        self.role = create_role(self, "emr-serverless")
        assets.grant_read(self.role)
        allow(
            self.role,
            ("logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"),
            [self.log.log_group_arn],
            "EMR Serverless names the streams of a log group after the application and the job run.",
        )
        # https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/logging.html
        allow(self.role, ("logs:DescribeLogGroups",), ["*"], "The action lists all log groups and has no resource.")
        self.launch = EmrLaunch(
            application=self.application.attr_application_id,
            role=self.role.role_arn,
            entry_point=script.s3_object_url,
            arguments=_script_arguments(assets, resources, Stack.of(self).region),
            spark_submit_parameters=spark_submit_parameters,
            timeout_minutes=timeout_minutes,
            log_group=self.log.log_group_name,
            log_uri=event_logs_uri(resources.control_bucket) if settings.spark.ui_logs else "",
            # EMR keeps event logs for its Spark UI in its own storage, encrypted with its own key.
            keeps_event_logs=not settings.encryption.kms_key,
        )

    def add_launch(self, functions: Iterable[RouterFunction], variable: str) -> None:
        for item in functions:
            item.function.add_environment(variable, self.launch.to_text())

    def allow_watch(self, role: iam.Role) -> None:
        self._allow_runs(role, "emr-serverless:GetJobRun")

    def _allow_runs(self, role: iam.Role, *actions: str) -> None:
        allow(role, actions, [f"{self.application.attr_arn}/jobruns/*"], ANY_RUN)

    def _allow_start(self, role: iam.Role, *actions: str) -> None:
        allow(role, actions, [self.application.attr_arn])
        allow(role, ("iam:PassRole",), [self.role.role_arn], conditions=PASSED)


class EmrBatch(EmrApplication):
    """The application of the batch lane; it starts with the first run, and stops when it is idle."""

    def __init__(self, scope: Construct, name: str, parts: JobParts) -> None:
        settings, assets, resources = parts.settings, parts.assets, parts.resources
        worker_type, max_vcpus = settings.batch.worker_type, settings.emr.max_vcpus
        worker = WORKERS[worker_type], MEMORY_GIB[worker_type]
        super().__init__(
            scope,
            name,
            job=resources.batch_job,
            log=log_group(resources.stack),
            parts=parts,
            vcpus=max_vcpus,
            gigabytes=max_vcpus // worker[0] * worker[1],
            runs=settings.max_emr_runs,
            script=assets.batch_script,
            spark_submit_parameters=_spark_submit_parameters(assets, worker, worker),
            timeout_minutes=settings.batch.run_timeout_minutes,
        )

    def allow_machine(self, role: iam.Role) -> None:
        self._allow_start(role, "emr-serverless:StartJobRun")
        self._allow_runs(role, "emr-serverless:GetJobRun", "emr-serverless:CancelJobRun")
        allow(role, USE_RULE, [Stack.of(self).format_arn(service="events", resource="rule", resource_name=RUN_RULE)])


class EmrStream(EmrApplication):
    """The application of the stream lane, for the runs of all shards, so that no night takes its vCPUs."""

    def __init__(self, scope: Construct, name: str, parts: JobParts) -> None:
        settings, assets, resources = parts.settings, parts.assets, parts.resources
        stream, runs = settings.stream, settings.stream.jobs
        driver, executor = (DRIVER_VCPUS, DRIVER_GB), (WORKERS[stream.worker_type], MEMORY_GIB[stream.worker_type])
        super().__init__(
            scope,
            name,
            job=resources.stream_job,
            log=stream_log_group(resources.stack),
            parts=parts,
            vcpus=settings.stream_vcpus,
            gigabytes=int(runs * stream.units.gb),
            runs=runs,
            script=assets.stream_script,
            spark_submit_parameters=_spark_submit_parameters(assets, driver, executor, _scaling(stream)),
            timeout_minutes=STREAM_TIMEOUT_MINUTES,
        )

    def allow_stream_start(self, role: iam.Role) -> None:
        """Start a run, after a check whether one exists."""
        self._allow_start(role, "emr-serverless:StartJobRun", "emr-serverless:ListJobRuns")

    def allow_stream_end(self, role: iam.Role) -> None:
        """End runs; who starts them may list them."""
        self._allow_runs(role, "emr-serverless:CancelJobRun")


def _script_arguments(assets: Assets, resources: ResourceNames, region: str) -> str:
    """Arguments of the scripts, the same as on Glue, separated by spaces. No argument contains a space."""
    own = {"--settings": assets.settings.s3_object_url, "--region": region}
    return " ".join(word for pair in {**resources.to_arguments(), **own}.items() for word in pair)


def _spark_submit_parameters(
    assets: Assets, driver: tuple[int, int], executor: tuple[int, int], more: Mapping[str, str] | None = None
) -> str:
    """Spark's properties; ``more``: properties of one lane. A driver or an executor is given as vCPUs and GB."""
    properties = {**SPARK_SETTINGS, "spark.submit.pyFiles": assets.job_code.s3_object_url}
    if assets.emr_libraries is not None:
        properties["spark.archives"] = f"{assets.emr_libraries.s3_object_url}#{LIBRARIES}"
        properties["spark.emr-serverless.driverEnv.PYTHONPATH"] = f"./{LIBRARIES}"
        properties["spark.executorEnv.PYTHONPATH"] = f"./{LIBRARIES}"
    for part, (vcpus, gigabytes) in (("driver", driver), ("executor", executor)):
        heap = heap_gb(gigabytes)
        properties[f"spark.{part}.cores"] = str(vcpus)
        properties[f"spark.{part}.memory"] = f"{heap}g"
        properties[f"spark.{part}.memoryOverhead"] = f"{gigabytes - heap}g"
    return " ".join(f"--conf {key}={value}" for key, value in {**properties, **(more or {})}.items())


def _scaling(stream: StreamSettings) -> dict[str, str]:
    """Executors start and end with the tasks; without these properties a run would begin with three executors."""
    first = max(1, stream.emr_min_executors)
    return {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(stream.emr_min_executors),
        "spark.dynamicAllocation.maxExecutors": str(stream.max_workers - 1),
        # So the first files find an executor, although the driver later waits alone.
        "spark.dynamicAllocation.initialExecutors": str(first),
        "spark.executor.instances": str(first),
    }
