"""The state machines, with their substitutions and permissions.

The ASL files stay unchanged: CloudFormation replaces the quoted placeholders.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from infra.allow import allow
from infra.engines import Engines
from infra.functions import RouterFunction
from infra.jobs import USE_RULE
from infra.log_groups import add_log_group
from infra.names import StackNames
from lake import layout
from lake.settings import Settings
from lake.settings.lanes import HELD_ROUNDS
from lake.settings.operation import STOP_GRACE_MINUTES

if TYPE_CHECKING:
    from aws_cdk import aws_s3 as s3
    from aws_cdk import aws_sns as sns


NESTED_EXECUTION_RULE = "StepFunctionsGetEventsForStepFunctionsExecutionRule"
"""The EventBridge rule by which Step Functions learns of a nested execution's end; AWS fixes its name
(https://docs.aws.amazon.com/step-functions/latest/dg/connect-stepfunctions.html).
"""
INDEX_WAIT_SECONDS = 5
"""``overnight`` lets the index of open manifests catch up for this time before it plans.

Usually it lags by less than a second, but AWS promises no bound (Amazon DynamoDB Developer Guide, "Using global
secondary indexes"). What it still lacks then stays QUEUED for the next execution.
"""


class Machines(Construct):
    """The state machines ``overnight``, ``backfill``, ``stream_window`` and ``verify``, with their permissions."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        settings: Settings,
        names: StackNames,
        functions: Mapping[str, RouterFunction],
        engines: Engines,
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
                **_function_arns(functions, "plan", "run_status", "settle", "catalog"),
                "BatchJob": names.batch_job,
                "Topic": topic.topic_arn,
                "IndexWaitSeconds": str(INDEX_WAIT_SECONDS),
                "HeldWaitSeconds": str(settings.batch.held_wait_seconds),
                "HeldRounds": str(HELD_ROUNDS),
                "MaxAttempts": str(settings.batch.max_attempts),
                "WorkerType": settings.batch.worker_type,
                "RunTimeoutMinutes": str(settings.batch.run_timeout_minutes),
                **engines.substitutions,
            },
        )
        self.backfill = Machine(
            self,
            "Backfill",
            "backfill.asl.json",
            names.backfill_machine,
            {
                **_function_arns(functions, "backfill", "plan", "reprocess"),
                "OvernightMachine": self.overnight.arn,
                "Topic": topic.topic_arn,
            },
        )
        self.stream_window = Machine(
            self,
            "StreamWindow",
            "stream_window.asl.json",
            names.stream_window_machine,
            {
                **_function_arns(functions, "stream_control"),
                "Topic": topic.topic_arn,
                "WatchSeconds": str(settings.schedule.watch_seconds),
                "StopRounds": str(math.ceil(STOP_GRACE_MINUTES * 60 / settings.schedule.watch_seconds)),
            },
        )
        self.verify = self._create_verify(names, engines, topic) if settings.verify.share else None
        """None: nothing is verified by schedule."""
        self.all = tuple(
            machine
            for machine in (self.overnight, self.backfill, self.stream_window, self.verify)
            if machine is not None
        )
        self._allow(functions, engines, control, topic)

    def _create_verify(self, names: StackNames, engines: Engines, topic: sns.ITopic) -> Machine:
        substitutions = {"BatchJob": names.batch_job, "Topic": topic.topic_arn}
        machine = Machine(self, "Verify", "verify.asl.json", names.verify_machine, substitutions)
        engines.jobs.allow_machine(machine.role)
        return machine

    def _allow(
        self, functions: Mapping[str, RouterFunction], engines: Engines, control: s3.IBucket, topic: sns.ITopic
    ) -> None:
        overnight = self.overnight
        overnight.allow_invoke(*(functions[name] for name in ("plan", "run_status", "settle", "catalog")))
        overnight.allow_executions(overnight)
        engines.allow_machine(overnight.role)
        allow(
            overnight.role,
            ("s3:GetObject",),
            [control.arn_for_objects(f"{layout.PLANS}*")],
            "The Map reads the index of its own execution, whose key contains the execution's name.",
        )
        for machine in self.all:
            allow(machine.role, ("sns:Publish",), [topic.topic_arn])
        self.backfill.allow_invoke(*(functions[name] for name in ("backfill", "plan", "reprocess")))
        self.backfill.allow_executions(overnight)
        rule = Stack.of(self).format_arn(service="events", resource="rule", resource_name=NESTED_EXECUTION_RULE)
        allow(self.backfill.role, USE_RULE, [rule])
        self.stream_window.allow_invoke(functions["stream_control"])


def _function_arns(functions: Mapping[str, RouterFunction], *names: str) -> dict[str, str]:
    """Placeholder -> ARN of each named function: ``plan`` fills ``PlanFunction``."""
    return {
        f"{''.join(word.title() for word in name.split('_'))}Function": functions[name].function.function_arn
        for name in names
    }


DEFINITIONS = Path(__file__).parents[1] / "statemachines"


class Machine(Construct):
    """One state machine with its log group and role.

    ``substitutions``: the value of every placeholder of the ASL file.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        file: str,
        machine_name: str,
        substitutions: Mapping[str, str],
    ) -> None:
        super().__init__(scope, name)
        self.arn = Stack.of(self).format_arn(
            service="states",
            resource="stateMachine",
            resource_name=machine_name,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        """Built from the name: a reference to the machine in the policy of its own role would be circular."""
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("states.amazonaws.com"))
        self.state_machine = stepfunctions.StateMachine(
            self,
            "Machine",
            state_machine_name=machine_name,
            definition_body=stepfunctions.DefinitionBody.from_string((DEFINITIONS / file).read_text(encoding="utf-8")),
            definition_substitutions=substitutions,
            role=self.role.without_policy_updates(),
            tracing_enabled=True,
            logs=stepfunctions.LogOptions(
                # AWS recommends this prefix: log groups under it do not count towards the size limit of the account's
                # resource policy for CloudWatch Logs.
                destination=add_log_group(self, "Logs", f"/aws/vendedlogs/states/{machine_name}"),
                level=stepfunctions.LogLevel.ALL,
            ),
        )
        self._allow_logs_and_traces()

    def allow_invoke(self, *functions: RouterFunction) -> None:
        """Let the machine invoke these functions."""
        allow(self.role, ("lambda:InvokeFunction",), [item.function.function_arn for item in functions])

    def allow_executions(self, machine: Machine) -> None:
        """Let the machine start, redrive, describe and stop executions of ``machine``.

        With itself as ``machine``: the child executions of its own distributed Map.
        """
        allow(self.role, ("states:StartExecution", "states:RedriveExecution"), [machine.arn])
        executions = machine.arn.replace(":stateMachine:", ":execution:")
        allow(
            self.role,
            ("states:DescribeExecution", "states:StopExecution", "states:RedriveExecution"),
            [f"{executions}:*", f"{executions}/*"],
            "Executions and child executions of a Map Run get their names when they start.",
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
        reason = "The actions of CloudWatch's log deliveries and of X-Ray have no resources."
        allow(self.role, deliveries, ["*"], reason)
        traces = (
            "xray:PutTraceSegments",
            "xray:PutTelemetryRecords",
            "xray:GetSamplingRules",
            "xray:GetSamplingTargets",
        )
        allow(self.role, traces, ["*"], reason)
