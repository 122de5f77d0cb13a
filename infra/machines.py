"""The state machines, with their substitutions and permissions.

The ASL files stay unchanged: CloudFormation replaces the quoted placeholders.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from infra.allow import acknowledge_finding, allow, create_role
from infra.engines import Engines
from infra.functions import RouterFunction
from infra.jobs import USE_RULE
from infra.log_groups import add_log_group
from infra.names import camel_case
from lake import layout
from lake.ledger.table import INDEX_WAIT_SECONDS
from lake.resource_names import ResourceNames
from lake.settings import Settings
from lake.settings.lanes import HELD_ROUNDS
from lake.settings.operation import STOP_GRACE_MINUTES

NESTED_EXECUTION_RULE = "StepFunctionsGetEventsForStepFunctionsExecutionRule"
"""The EventBridge rule by which Step Functions learns of a nested execution's end; AWS fixes its name
(https://docs.aws.amazon.com/step-functions/latest/dg/connect-stepfunctions.html).
"""


class Machines(Construct):
    """The state machines ``overnight``, ``backfill``, ``stream_window`` and ``verify``, with their permissions."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        settings: Settings,
        resources: ResourceNames,
        functions: Mapping[str, RouterFunction],
        engines: Engines,
        control: s3.IBucket,
        topic: sns.ITopic,
    ) -> None:
        super().__init__(scope, name)

        def machine(name: str, invoked: Sequence[str], substitutions: Mapping[str, str]) -> Machine:
            called = {item: functions[item].function.function_arn for item in invoked}
            machine_name = f"{resources.stack}-{name.replace('_', '-')}"
            return Machine(self, name, machine_name, called, topic, substitutions)

        self.overnight = machine(
            "overnight",
            ("plan", "run_status", "settle", "catalog"),
            {
                "Stage": settings.stage,
                "BatchJob": resources.batch_job,
                "IndexWaitSeconds": str(INDEX_WAIT_SECONDS),
                "HeldWaitSeconds": str(settings.batch.held_wait_seconds),
                "HeldRounds": str(HELD_ROUNDS),
                "MaxAttempts": str(settings.batch.max_attempts),
                "WorkerType": settings.batch.worker_type,
                **engines.substitutions,
            },
        )
        self.overnight.allow_executions(self.overnight)
        engines.allow_machine(self.overnight.role)
        allow(
            self.overnight.role,
            ("s3:GetObject",),
            [control.arn_for_objects(f"{layout.PLANS}*")],
            "The Map reads the index of its own execution, whose key contains the execution's name.",
        )
        self.backfill = machine(
            "backfill",
            ("backfill", "plan", "reprocess"),
            {"OvernightMachine": self.overnight.arn},
        )
        self.backfill.allow_executions(self.overnight)
        rule = Stack.of(self).format_arn(service="events", resource="rule", resource_name=NESTED_EXECUTION_RULE)
        allow(self.backfill.role, USE_RULE, [rule])
        self.stream_window = machine(
            "stream_window",
            ("stream_control",),
            {
                "Stage": settings.stage,
                "WatchSeconds": str(settings.schedule.watch_seconds),
                "StopRounds": str(math.ceil(STOP_GRACE_MINUTES * 60 / settings.schedule.watch_seconds)),
            },
        )
        self.verify: Machine | None = None
        """None: nothing is verified by schedule."""
        if settings.verify.share:
            self.verify = machine("verify", (), {"BatchJob": resources.batch_job})
            engines.jobs.allow_machine(self.verify.role)
        found = (self.overnight, self.backfill, self.stream_window, self.verify)
        self.all = tuple(item for item in found if item is not None)


DEFINITIONS = Path(__file__).parents[1] / "statemachines"


class Machine(Construct):
    """One state machine with its log group and role, which may invoke functions and publish to the topic."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        machine_name: str,
        invoked: Mapping[str, str],
        topic: sns.ITopic,
        substitutions: Mapping[str, str],
    ) -> None:
        """``name``: that of its file, ``stream_window`` for ``stream_window.asl.json``. ``invoked``: name -> ARN of
        each function; ``plan`` fills the placeholder ``PlanFunction``. ``substitutions``: the other placeholders.
        """
        super().__init__(scope, camel_case(name))
        definition = (DEFINITIONS / f"{name}.asl.json").read_text(encoding="utf-8")
        functions = {f"{camel_case(key)}Function": arn for key, arn in invoked.items()}
        self.arn = Stack.of(self).format_arn(
            service="states",
            resource="stateMachine",
            resource_name=machine_name,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        """Built from the name: a reference to the machine in the policy of its own role would be circular."""
        self.role = create_role(self, "states")
        self.state_machine = stepfunctions.StateMachine(
            self,
            "Machine",
            state_machine_name=machine_name,
            definition_body=stepfunctions.DefinitionBody.from_string(definition),
            definition_substitutions={**functions, "Topic": topic.topic_arn, **substitutions},
            role=self.role,
            tracing_enabled=True,
            logs=stepfunctions.LogOptions(
                # AWS recommends this prefix: log groups under it do not count towards the size limit of the account's
                # resource policy for CloudWatch Logs.
                destination=add_log_group(self, "Logs", f"/aws/vendedlogs/states/{machine_name}"),
                level=stepfunctions.LogLevel.ALL,
            ),
        )
        if invoked:
            allow(self.role, ("lambda:InvokeFunction",), list(invoked.values()))
        allow(self.role, ("sns:Publish",), [topic.topic_arn])
        reason = "CDK's statements for CloudWatch's log deliveries and for X-Ray: their actions have no resources."
        acknowledge_finding(self.role, "AwsSolutions-IAM5[Resource::*]", reason)

    def allow_executions(self, machine: "Machine") -> None:
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
