"""The Glue jobs: a streaming job for each shard with at most one run at a time, and a batch job with many runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from aws_cdk import CfnResource, Duration, Stack
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.allow import acknowledge_finding, allow
from infra.assets import Assets, glue_code
from infra.log_groups import add_log_group
from lake import layout
from lake.resource_names import ResourceNames
from lake.settings import Settings
from lake.shards import FIRST_SHARD

STREAM_TIMEOUT_MINUTES = 24 * 60
"""A stream window lasts a day at most; ``stream_window`` starts the job again when work is left."""
SPARK_SETTINGS = {
    # Spark runs a second copy of a task on a slow or dying executor and uses the first result; only this result is
    # published. The tasks of a run have about equal input, so twice the median time means trouble. A second copy of a
    # task under a minute gains nothing.
    "spark.speculation": "true",
    "spark.speculation.multiplier": "2",
    "spark.speculation.quantile": "0.75",
    "spark.speculation.minTaskRuntime": "60s",
    # Spark's own default; set explicitly because an attempt relies on Spark to retry its tasks.
    "spark.task.maxFailures": "4",
}
USE_RULE = ("events:PutTargets", "events:PutRule", "events:DescribeRule")
"""Rights that Step Functions needs on the EventBridge rule by which it learns of an end."""
NO_SECURITY_CONFIGURATION = (
    "The buckets and the log groups encrypt what the job stores, by the key of the settings or those of the services. "
    "Job bookmarks are not used: the ledger records what is done."
)


class Jobs(Construct):
    """All jobs share their code, their arguments, their role and their log groups."""

    def __init__(self, scope: Construct, name: str, parts: "JobParts") -> None:
        super().__init__(scope, name)
        stack, settings, resources = Stack.of(self), parts.settings, parts.resources
        self._settings = settings
        self._assets = parts.assets
        self._log_prefix = f"/aws-glue/{resources.stack}"
        self.output_log = add_log_group(self, "OutputLog", f"{self._log_prefix}/output")
        self._error_log = add_log_group(self, "ErrorLog", f"{self._log_prefix}/error")
        self.shards = settings.shards.names
        self.stream_arns = [
            stack.format_arn(service="glue", resource="job", resource_name=resources.stream_job_of(shard))
            for shard in settings.glue_shards
        ]
        """ARNs of the streaming jobs; empty if they run on another engine."""
        self.batch_arn = stack.format_arn(service="glue", resource="job", resource_name=resources.batch_job)
        self.role = self._create_role()
        arguments = self._arguments(resources)
        common = {
            # CDK would add its own grants, whose actions have wildcards.
            "role": self.role.without_policy_updates(),
            "extra_python_files": [glue_code(parts.assets.job_code)],
            "glue_version": glue.GlueVersion.V6_0,
            # The state machine retries a run, after the ledger has named the open manifests.
            "max_retries": 0,
            "continuous_logging": glue.ContinuousLoggingProps(enabled=False),
            # Glue's metrics: nothing reads them, each run makes new ones, and only a script with a ``GlueContext``
            # sends them (https://docs.aws.amazon.com/glue/latest/dg/monitor-profile-glue-job-cloudwatch-metrics.html).
            "enable_metrics": False,
            "enable_observability_metrics": False,
        }
        streaming = [self._create_stream_job(shard, resources, common, arguments) for shard in settings.glue_shards]
        jobs = (*streaming, self._create_batch_job(resources.batch_job, common, arguments))
        for job in jobs:
            acknowledge_finding(job, "AwsSolutions-GL1", NO_SECURITY_CONFIGURATION)
            acknowledge_finding(job, "AwsSolutions-GL3", NO_SECURITY_CONFIGURATION)
        if settings.spark.ui_logs:
            # In both formats, for Glue's console and for a history server; CDK's property adds only the first.
            uri = event_logs_uri(resources.control_bucket)
            for job in jobs:
                resource = cast("CfnResource", job.node.default_child)
                resource.add_property_override("DefaultArguments.--enable-spark-ui", "true")
                resource.add_property_override("DefaultArguments.--enable-spark-ui-legacy-path", "true")
                resource.add_property_override("DefaultArguments.--spark-event-logs-path", uri)

    def allow_watch(self, role: iam.Role) -> None:
        allow(role, ("glue:GetJobRun",), [*self.stream_arns, self.batch_arn])

    def allow_machine(self, role: iam.Role) -> None:
        actions = ("glue:StartJobRun", "glue:GetJobRun", "glue:GetJobRuns", "glue:BatchStopJobRun")
        allow(role, actions, [self.batch_arn])

    def allow_stream_start(self, role: iam.Role) -> None:
        """Start a run of a streaming job, and list its runs."""
        allow(role, ("glue:StartJobRun", "glue:GetJobRuns"), self.stream_arns)

    def allow_stream_end(self, role: iam.Role) -> None:
        allow(role, ("glue:BatchStopJobRun",), self.stream_arns)

    def _create_stream_job(
        self, shard: str, resources: ResourceNames, common: Mapping[str, Any], arguments: dict[str, str]
    ) -> glue.PySparkStreamingJob:
        first = shard == FIRST_SHARD
        # More workers as soon as tasks wait for 30 s. AWS's pages disagree about the default
        # (aws-glue-programming-etl-glue-arguments.html: true; auto-scaling.html: not within a micro-batch).
        arguments = {**arguments, "--auto-scale-within-microbatch": "true"}
        return glue.PySparkStreamingJob(
            self,
            "Stream" if first else f"Stream-{shard}",
            **common,
            job_name=resources.stream_job_of(shard),
            description="hybrid-router: converts urgent and peak-hour files within minutes"
            + ("" if first else f", shard {shard}"),
            script=glue_code(self._assets.stream_script),
            worker_configuration=_workers(self._settings.stream.worker_type, self._settings.stream.max_workers),
            max_concurrent_runs=1,
            timeout=Duration.minutes(STREAM_TIMEOUT_MINUTES),
            default_arguments=arguments if first else {**arguments, "--stream_shard": shard},
        )

    def _create_batch_job(
        self, name: str, common: Mapping[str, Any], arguments: dict[str, str]
    ) -> glue.PySparkEtlJob | glue.PySparkFlexEtlJob:
        # Each run of a plan names its execution class; a verification has the job's class.
        kind = glue.PySparkFlexEtlJob if self._settings.batch.uses_flex else glue.PySparkEtlJob
        return kind(
            self,
            "Batch",
            **common,
            job_name=name,
            description="hybrid-router: converts the manifests of one run of an overnight execution",
            script=glue_code(self._assets.batch_script),
            worker_configuration=_workers(self._settings.batch.worker_type, self._settings.batch.workers),
            # A verification is a run of this job, and takes none of the night's places.
            max_concurrent_runs=self._settings.max_batch_runs,
            timeout=Duration.minutes(self._settings.batch.run_timeout_minutes),
            default_arguments=arguments,
        )

    def _arguments(self, resources: ResourceNames) -> dict[str, str]:
        wheels = self._assets.wheels
        # --extra-py-files takes no native libraries. Without an index, pip can install from this zip only. Why not
        # --python-virtual-env: docs/deploy.md.
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
            # Neither the driver nor a worker finds it in its environment (transform/clients.py).
            "--region": Stack.of(self).region,
            "--enable-auto-scaling": "true",
            # From Glue 5.0 on, stdout and stderr go to <prefix>/output, Spark's own log to <prefix>/error (AWS Glue,
            # "Logging for AWS Glue jobs"); --continuous-log-* is of Glue 4.0 and earlier.
            "--custom-logGroup-prefix": self._log_prefix,
            # Glue accepts one --conf argument; further settings follow inside its value.
            "--conf": " --conf ".join(f"{key}={value}" for key, value in SPARK_SETTINGS.items()),
        }

    def _create_role(self) -> iam.Role:
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("glue.amazonaws.com"))
        self._assets.grant_read(role)
        # Glue's own policy has CreateLogGroup; whether Glue asks for it where the group exists has not been seen.
        allow(
            role,
            ("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"),
            [group.log_group_arn for group in (self.output_log, self._error_log)],
            "Glue names the streams of a log group after the run and its executors.",
        )
        return role


def event_logs_uri(control_bucket: str) -> str:
    """Where every engine stores Spark's event logs; ends with a slash."""
    return f"s3://{control_bucket}/{layout.SPARK_LOGS}"


def _workers(worker_type: str, number: int) -> glue.WorkerConfiguration:
    return glue.WorkerConfiguration(
        worker_type=glue.WorkerType[worker_type.replace(".", "_")], number_of_workers=number
    )


@dataclass(frozen=True, slots=True)
class JobParts:
    """Settings, names and files, the same on all engines."""

    settings: Settings
    assets: Assets
    resources: ResourceNames
