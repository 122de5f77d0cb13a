"""The two Glue jobs: a small streaming job that may run once, and a batch job that may run many times at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import ArnFormat, Duration, RemovalPolicy, Stack
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.allow import acknowledge, acknowledge_wildcards, allow
from infra.assets import glue_code
from infra.functions import NAMESPACE

if TYPE_CHECKING:
    from infra.assets import Assets
    from infra.names import StackNames
    from lake.resource_names import ResourceNames
    from lake.settings import Settings

STREAM_TIMEOUT_MINUTES = 24 * 60
"""No stream window is longer than a day; ``stream_window`` starts the job again when work is left."""
SPARK_SETTINGS = {
    # A task on a slow or dying executor is run once more elsewhere; only the one that Spark takes is published. Tasks
    # of one run are of about equal size: twice the median means trouble; below a minute a second copy gains nothing.
    "spark.speculation": "true",
    "spark.speculation.multiplier": "2",
    "spark.speculation.quantile": "0.75",
    "spark.speculation.minTaskRuntime": "60s",
    # Spark's own default, said here because the protocol of an attempt counts on a task being tried again.
    "spark.task.maxFailures": "4",
}
NO_SECURITY_CONFIGURATION = (
    "The buckets encrypt what the job stores (SSE-S3); its logs hold ids and counts, no data, and are encrypted by "
    "CloudWatch's own key; job bookmarks are not used: the ledger decides what is done."
)


class Jobs(Construct):
    """Both jobs share their code, their role's policy and their log group."""

    def __init__(self, scope: Construct, name: str, settings: Settings, names: StackNames, assets: Assets) -> None:
        super().__init__(scope, name)
        stack = Stack.of(self)
        self._settings = settings
        self._names = names
        self._assets = assets
        self._logs = logs.LogGroup(
            self, "Logs", retention=logs.RetentionDays.ONE_MONTH, removal_policy=RemovalPolicy.DESTROY
        )
        self.stream_arn = stack.format_arn(service="glue", resource="job", resource_name=names.stream_job)
        self.batch_arn = stack.format_arn(service="glue", resource="job", resource_name=names.batch_job)
        self.role = self._role()

    def create(self, resources: ResourceNames) -> None:
        """Create the jobs, once every place they are told of is known."""
        arguments = self._arguments(resources)
        # CDK's own grants would add actions with wildcards.
        role = self.role.without_policy_updates()
        streaming = glue.PySparkStreamingJob(
            self,
            "Stream",
            job_name=self._names.stream_job,
            description="hybrid-router: converts urgent and peak-hour files within minutes",
            role=role,
            script=glue_code(self._assets.stream_script),
            extra_python_files=[glue_code(self._assets.job_code)],
            glue_version=glue.GlueVersion.V6_0,
            worker_configuration=_workers(self._settings.stream.worker_type, self._settings.stream.max_workers),
            max_concurrent_runs=1,
            max_retries=0,
            timeout=Duration.minutes(STREAM_TIMEOUT_MINUTES),
            continuous_logging=self._logging(),
            default_arguments=arguments,
        )
        kind = glue.PySparkFlexEtlJob if self._settings.batch.flex else glue.PySparkEtlJob
        batch = kind(
            self,
            "Batch",
            job_name=self._names.batch_job,
            description="hybrid-router: converts one run of the night's manifests",
            role=role,
            script=glue_code(self._assets.batch_script),
            extra_python_files=[glue_code(self._assets.job_code)],
            glue_version=glue.GlueVersion.V6_0,
            worker_configuration=_workers(self._settings.batch.worker_type, self._settings.batch.workers),
            max_concurrent_runs=self._settings.batch.max_runs,
            # The state machine repeats a run: it asks the ledger first what is left.
            max_retries=0,
            timeout=Duration.minutes(self._settings.batch.run_timeout_minutes),
            continuous_logging=self._logging(),
            default_arguments=arguments,
        )
        for job in (streaming, batch):
            acknowledge(job, "AwsSolutions-GL1", NO_SECURITY_CONFIGURATION)
            acknowledge(job, "AwsSolutions-GL3", NO_SECURITY_CONFIGURATION)

    def _arguments(self, resources: ResourceNames) -> dict[str, str]:
        wheels = self._assets.wheels
        # Native libraries cannot come as --extra-py-files; without an index, nothing but this zip is installed.
        libraries = (
            {}
            if wheels is None
            else {
                "--additional-python-modules": wheels.s3_object_url,
                "--python-modules-installer-option": "--no-index",
            }
        )
        return {
            **libraries,
            **resources.to_arguments(),
            "--settings": self._assets.settings.s3_object_url,
            "--enable-auto-scaling": "true",
            "--enable-job-insights": "true",
            # Glue takes one such argument, in which further settings follow like this.
            "--conf": " --conf ".join(f"{key}={value}" for key, value in SPARK_SETTINGS.items()),
        }

    def _logging(self) -> glue.ContinuousLoggingProps:
        return glue.ContinuousLoggingProps(enabled=True, log_group=self._logs, quiet=True)

    def _role(self) -> iam.Role:
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("glue.amazonaws.com"))
        self._assets.grant_read(role)
        self._logs.grant_write(role)
        allow(
            role,
            ("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"),
            [
                Stack.of(self).format_arn(
                    service="logs",
                    resource="log-group",
                    resource_name="/aws-glue/*",
                    arn_format=ArnFormat.COLON_RESOURCE_NAME,
                )
            ],
            "Glue names its own log groups and their streams itself, after the job and the run.",
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["cloudwatch:PutMetricData"],
                resources=["*"],
                conditions={"StringEquals": {"cloudwatch:namespace": ["Glue", NAMESPACE]}},
            )
        )
        acknowledge_wildcards(role, ["*"], "PutMetricData knows no resources; the condition names the namespaces.")
        return role


def _workers(worker_type: str, number: int) -> glue.WorkerConfiguration:
    return glue.WorkerConfiguration(
        worker_type=glue.WorkerType[worker_type.replace(".", "_")], number_of_workers=number
    )
