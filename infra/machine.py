"""One state machine: its ASL file unchanged, with CloudFormation's substitutions for the quoted placeholders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from infra.allow import allow
from infra.functions import RouterFunction
from infra.log_groups import add_log_group

DEFINITIONS = Path(__file__).parents[1] / "statemachines"


class Machine(Construct):
    """One state machine with its log group and role.

    Parameters
    ----------
    substitutions
        The value of every placeholder of the ASL file.
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
