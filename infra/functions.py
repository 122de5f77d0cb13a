"""The router's Lambda functions: one asset, one small role each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.allow import acknowledge
from infra.lambda_asset import SETTINGS_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMESPACE = "hybrid-router"
ROUTE_TIMEOUT_SECONDS = 120
ONE_PYTHON = "Python 3.13 is what Glue 6.0 runs: one version for all of the code."
MAX_SECONDS = 900
"""What Lambda allows."""


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """One function; its handler is ``router.<name>.handler.handler``."""

    name: str
    purpose: str
    timeout: int
    """Seconds."""
    memory: int = 512
    """MiB; Lambda's share of a CPU grows with it."""


SPECS = (
    FunctionSpec("route", "decides the lane of every arrival and takes ownership", ROUTE_TIMEOUT_SECONDS, 1024),
    FunctionSpec("plan", "packs the backlog into runs", MAX_SECONDS, 1769),
    # Shorter than router.ownership.OWNER_GRACE, like route: an invocation that may own arrivals is over by then.
    FunctionSpec("backfill", "finds older arrivals that have no owner", 240, 1024),
    FunctionSpec("run_status", "says what is left of a run", 300),
    FunctionSpec("settle", "gives the verdict of an execution", MAX_SECONDS, 1024),
    FunctionSpec("sweep", "repairs what died on its way and removes its remains", MAX_SECONDS, 1024),
    FunctionSpec("catalog", "creates and extends the tables", 300),
    FunctionSpec("stream_control", "starts, watches and stops the streaming job", 60),
    FunctionSpec("promote", "moves queued files to the stream lane", MAX_SECONDS, 1024),
)


class RouterFunction(Construct):
    """A function with its log group and a role that may write this log and nothing else."""

    def __init__(
        self, scope: Construct, spec: FunctionSpec, code: lambda_.Code, environment: Mapping[str, str]
    ) -> None:
        super().__init__(scope, spec.name)
        group = logs.LogGroup(
            self, "Logs", retention=logs.RetentionDays.ONE_MONTH, removal_policy=RemovalPolicy.DESTROY
        )
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        group.grant_write(self.role)
        self.function = lambda_.Function(
            self,
            "Function",
            description=f"hybrid-router: {spec.purpose}",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            handler=f"router.{spec.name}.handler.handler",
            code=code,
            role=self.role,
            timeout=Duration.seconds(spec.timeout),
            memory_size=spec.memory,
            log_group=group,
            environment={
                **environment,
                "SETTINGS_FILE": SETTINGS_FILE,
                "POWERTOOLS_SERVICE_NAME": spec.name,
                "POWERTOOLS_METRICS_NAMESPACE": NAMESPACE,
            },
        )
        acknowledge(self.function, "AwsSolutions-L1", ONE_PYTHON)


def router_functions(scope: Construct, code: lambda_.Code, environment: Mapping[str, str]) -> dict[str, RouterFunction]:
    """All functions by name."""
    router = Construct(scope, "Router")
    return {spec.name: RouterFunction(router, spec, code, environment) for spec in SPECS}
