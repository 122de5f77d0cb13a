"""Everything that runs jobs of a stage: Glue's jobs, and the other engines that the settings name for a lane."""

from collections.abc import Mapping
from dataclasses import asdict, fields

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.emr_serverless import NO_LOG_URI, NOT_DEPLOYED, STARTERS, EmrBatch, EmrStream
from infra.functions import RouterFunction
from infra.jobs import JobParts, Jobs
from infra.log_groups import count_alarm_lines
from infra.names import camel_case
from lake.engines.emr_serverless import BATCH_LAUNCH, STREAM_LAUNCH, EmrLaunch


class Engines:
    """The engines of a stage, behind one interface."""

    def __init__(self, scope: Construct, parts: JobParts, functions: Mapping[str, RouterFunction]) -> None:
        """Create the engines that the settings name, and pass the launch of a run to the functions that need it."""
        self.jobs = Jobs(scope, "Jobs", parts)
        """Glue's jobs, which every stage has, because a verification runs on them."""
        self.emr_batch = EmrBatch(scope, "Emr", parts) if parts.settings.batch.uses_emr else None
        self.emr_stream = EmrStream(scope, "EmrStream", parts) if parts.settings.stream.on_emr else None
        if self.emr_batch is not None:
            # For ``doctor --canary``; the state machine has the values in its expressions.
            self.emr_batch.add_launch([functions["plan"]], BATCH_LAUNCH)
        if self.emr_stream is not None:
            self.emr_stream.add_launch([functions[name] for name in STARTERS], STREAM_LAUNCH)
        self.stream = self.emr_stream or self.jobs
        self.all = tuple(item for item in (self.jobs, self.emr_batch, self.emr_stream) if item is not None)
        self.roles = [item.role for item in self.all]
        self.stream_application = self.emr_stream.application.attr_application_id if self.emr_stream else ""
        """The id that the command line needs, in addition to the name, to find the streaming runs."""

    @property
    def substitutions(self) -> dict[str, str]:
        """Placeholders of the state machine ``overnight``, in addition to the name of Glue's job."""
        launch = {item.name: NOT_DEPLOYED for item in fields(EmrLaunch)}
        if self.emr_batch is not None:
            launch = {name: str(value) or NO_LOG_URI for name, value in asdict(self.emr_batch.launch).items()}
        return {f"Emr{camel_case(name)}": value for name, value in launch.items()}

    def allow_machine(self, role: iam.Role) -> None:
        """Start a run of the batch lane, wait for its end, and stop it with the execution."""
        for item in (self.jobs, self.emr_batch):
            if item is not None:
                item.allow_machine(role)

    def count_alarm_lines(self, scope: Construct, namespace: str) -> cloudwatch.Metric:
        """Count the lines that the job runs print for a person, on all engines together."""
        for name, item in (("Emr", self.emr_batch), ("EmrStream", self.emr_stream)):
            if item is not None:
                count_alarm_lines(scope, f"{name}LogAlarms", item.log, namespace)
        return count_alarm_lines(scope, "LogAlarms", self.jobs.output_log, namespace)
