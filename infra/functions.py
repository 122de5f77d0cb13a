"""The router's Lambda functions: they share one code asset; each has its own role."""

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.allow import acknowledge_finding
from infra.assets import SETTINGS_FILE
from infra.log_groups import add_log_group

ROUTE_TIMEOUT_SECONDS = 120
SAME_PYTHON_AS_GLUE = "Glue 6.0 runs Python 3.13: functions and jobs share code, so they run the same version."
MAX_EVENT_AGE = Duration.minutes(15)
"""A scheduled event that Lambda could not start within this time is dropped: the schedule's next one is due."""
TABLES = "tables"
"""The function that exists if a dataset has an Iceberg table."""
MAX_TIMEOUT_SECONDS = 900
"""Lambda's limit (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html)."""


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    name: str
    module: str
    """Module of ``router`` with the function's ``handler``."""
    purpose: str
    """Completes the description "hybrid-router: ..." in the console."""
    timeout_seconds: int
    memory_mib: int = 512
    """Lambda gives CPU in proportion to memory: one full vCPU at 1,769 MiB."""
    scheduled: bool = False
    """Whether a schedule invokes it, asynchronously."""


SPECS = (
    FunctionSpec(
        "route", "route.handler", "decides the lane of every arrival and takes ownership", ROUTE_TIMEOUT_SECONDS, 1024
    ),
    FunctionSpec("plan", "plan.handler", "packs the backlog into runs", MAX_TIMEOUT_SECONDS, 1769, scheduled=True),
    # Like route's timeout, shorter than OWNER_GRACE: after it, another invocation may take the arrivals.
    FunctionSpec("backfill", "requests.backfill", "finds older arrivals that have no owner", 240, 1024),
    FunctionSpec("run_status", "executions.run_status", "counts what is left of a run", 300),
    FunctionSpec("settle", "settle.handler", "reports the outcome of an execution", MAX_TIMEOUT_SECONDS, 1769),
    FunctionSpec(
        "sweep",
        "sweep.handler",
        "repairs interrupted work and removes what it left behind",
        MAX_TIMEOUT_SECONDS,
        1024,
        scheduled=True,
    ),
    FunctionSpec("catalog", "catalog.handler", "creates and extends the tables", 300, scheduled=True),
    FunctionSpec("stream_control", "stream.handler", "starts, watches and stops the streaming job", 60),
    FunctionSpec("promote", "requests.promote", "moves queued files to the stream lane", MAX_TIMEOUT_SECONDS, 1024),
    FunctionSpec(
        "reprocess", "requests.reprocess", "queues failed and converted manifests again", MAX_TIMEOUT_SECONDS, 1024
    ),
    # Batches of 1,000 manifests, of four tables, wait for some thousand requests, 32 at a time.
    FunctionSpec(TABLES, "tables.handler", "brings published files into the Iceberg tables", 300, 1024, scheduled=True),
    # As backfill's timeout, shorter than OWNER_GRACE.
    FunctionSpec(
        "resubmit", "requests.resubmit", "resubmits repaired lines of the quarantine to their hour, once", 240, 1024
    ),
)


class RouterFunction(Construct):
    """A function with its log group (30 days) and a role that can only write to that log group."""

    def __init__(
        self,
        scope: Construct,
        spec: FunctionSpec,
        code: lambda_.Code,
        environment: Mapping[str, str],
        metrics_namespace: str,
    ) -> None:
        super().__init__(scope, spec.name)
        group = add_log_group(self, "Logs")
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        group.grant_write(self.role)
        self.function = lambda_.Function(
            self,
            "Function",
            description=f"hybrid-router: {spec.purpose}",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            handler=f"router.{spec.module}.handler",
            code=code,
            role=self.role,
            timeout=Duration.seconds(spec.timeout_seconds),
            memory_size=spec.memory_mib,
            log_group=group,
            environment={
                **environment,
                "SETTINGS_FILE": SETTINGS_FILE,
                "POWERTOOLS_SERVICE_NAME": spec.name,
                "POWERTOOLS_METRICS_NAMESPACE": metrics_namespace,
            },
        )
        if spec.scheduled:
            # By default Lambda runs a failed asynchronous invocation two more times, even after a timeout: sweeps would
            # overlap. The schedule starts the next one anyway.
            self.function.configure_async_invoke(retry_attempts=0, max_event_age=MAX_EVENT_AGE)
        acknowledge_finding(self.function, "AwsSolutions-L1", SAME_PYTHON_AS_GLUE)
