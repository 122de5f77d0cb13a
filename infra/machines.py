"""The state machines: ASL files as they are, with the stack's names put into their quoted placeholders."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from aws_cdk import ArnFormat, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from infra.allow import allow
from lake import layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_cdk import aws_s3 as s3
    from aws_cdk import aws_sns as sns

    from infra.functions import RouterFunction
    from infra.jobs import Jobs
    from infra.names import StackNames
    from lake.settings import Settings

DEFINITIONS = Path(__file__).parents[1] / "statemachines"
NESTED_RULE = "StepFunctionsGetEventsForStepFunctionsExecutionRule"
"""The EventBridge rule by which Step Functions learns of a nested execution's end; its name is AWS's."""


class Machine(Construct):
    """One state machine with its log group and role."""

    def __init__(self, scope: Construct, name: str, file: str, machine_name: str, values: Mapping[str, str]) -> None:
        super().__init__(scope, name)
        self.name = machine_name
        self.arn = Stack.of(self).format_arn(
            service="states",
            resource="stateMachine",
            resource_name=machine_name,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        """Made of the name, so that the machine's own role can speak of it."""
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("states.amazonaws.com"))
        self.machine = stepfunctions.StateMachine(
            self,
            "Machine",
            state_machine_name=machine_name,
            definition_body=stepfunctions.DefinitionBody.from_string((DEFINITIONS / file).read_text(encoding="utf-8")),
            definition_substitutions=dict(values),
            role=self.role.without_policy_updates(),
            tracing_enabled=True,
            logs=stepfunctions.LogOptions(
                # Step Functions delivers only to groups of this prefix once an account has many.
                destination=logs.LogGroup(
                    self,
                    "Logs",
                    log_group_name=f"/aws/vendedlogs/states/{machine_name}",
                    retention=logs.RetentionDays.ONE_MONTH,
                    removal_policy=RemovalPolicy.DESTROY,
                ),
                level=stepfunctions.LogLevel.ALL,
            ),
        )
        self._allow_logs_and_traces()

    def allow_invoke(self, *functions: RouterFunction) -> None:
        """Call these functions."""
        allow(self.role, ("lambda:InvokeFunction",), [item.function.function_arn for item in functions])

    def allow_executions(self, machine: Machine) -> None:
        """Start, watch and stop executions of a machine (or its own Map Runs' children)."""
        allow(self.role, ("states:StartExecution", "states:RedriveExecution"), [machine.arn])
        executions = machine.arn.replace(":stateMachine:", ":execution:")
        allow(
            self.role,
            ("states:DescribeExecution", "states:StopExecution", "states:RedriveExecution"),
            [f"{executions}:*", f"{executions}/*"],
            "Executions and the children of a Map Run get their names when they start.",
        )

    def _allow_logs_and_traces(self) -> None:
        deliveries = (
            "logs:CreateLogDelivery",
            "logs:GetLogDelivery",
            "logs:UpdateLogDelivery",
            "logs:DeleteLogDelivery",
            "logs:ListLogDeliveries",
            "logs:PutResourcePolicy",
            "logs:DescribeResourcePolicies",
            "logs:DescribeLogGroups",
        )
        why = "CloudWatch's log deliveries and X-Ray know no resources."
        allow(self.role, deliveries, ["*"], why)
        traces = (
            "xray:PutTraceSegments",
            "xray:PutTelemetryRecords",
            "xray:GetSamplingRules",
            "xray:GetSamplingTargets",
        )
        allow(self.role, traces, ["*"], why)


class Machines(Construct):
    """``overnight``, ``backfill`` and ``stream_window``."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        settings: Settings,
        names: StackNames,
        functions: Mapping[str, RouterFunction],
        jobs: Jobs,
        control: s3.IBucket,
        topic: sns.ITopic,
    ) -> None:
        super().__init__(scope, name)
        self.overnight = Machine(
            self,
            "Overnight",
            "overnight.asl.json",
            names.overnight_machine,
            {
                **_functions(functions, "plan", "run_status", "settle", "catalog"),
                "BatchJob": names.batch_job,
                "Topic": topic.topic_arn,
                "HeldWaitSeconds": str(settings.batch.held_wait_seconds),
                "HeldRounds": str(settings.batch.held_rounds),
                "MaxAttempts": str(settings.batch.max_attempts),
            },
        )
        self.backfill = Machine(
            self,
            "Backfill",
            "backfill.asl.json",
            names.backfill_machine,
            {**_functions(functions, "backfill", "plan"), "OvernightMachine": self.overnight.arn},
        )
        self.stream_window = Machine(
            self,
            "StreamWindow",
            "stream_window.asl.json",
            names.stream_window_machine,
            {
                **_functions(functions, "stream_control"),
                "WatchSeconds": str(settings.schedule.watch_seconds),
                "StopRounds": str(
                    math.ceil(settings.schedule.stop_grace_minutes * 60 / settings.schedule.watch_seconds)
                ),
            },
        )
        self._permit(functions, jobs, control, topic)

    def _permit(
        self, functions: Mapping[str, RouterFunction], jobs: Jobs, control: s3.IBucket, topic: sns.ITopic
    ) -> None:
        night = self.overnight
        night.allow_invoke(*(functions[name] for name in ("plan", "run_status", "settle", "catalog")))
        night.allow_executions(night)
        runs = ("glue:StartJobRun", "glue:GetJobRun", "glue:GetJobRuns", "glue:BatchStopJobRun")
        allow(night.role, runs, [jobs.batch_arn])
        allow(
            night.role,
            ("s3:GetObject",),
            [control.arn_for_objects(f"{layout.PLANS}*")],
            "The Map reads the index of its own execution, which has the execution's name in its key.",
        )
        allow(night.role, ("sns:Publish",), [topic.topic_arn])
        self.backfill.allow_invoke(functions["backfill"], functions["plan"])
        self.backfill.allow_executions(night)
        rule = Stack.of(self).format_arn(service="events", resource="rule", resource_name=NESTED_RULE)
        allow(self.backfill.role, ("events:PutTargets", "events:PutRule", "events:DescribeRule"), [rule])
        self.stream_window.allow_invoke(functions["stream_control"])


def _functions(functions: Mapping[str, RouterFunction], *names: str) -> dict[str, str]:
    """``plan`` -> the value of the placeholder ``PlanFunction``."""
    return {
        f"{''.join(word.title() for word in name.split('_'))}Function": functions[name].function.function_arn
        for name in names
    }
