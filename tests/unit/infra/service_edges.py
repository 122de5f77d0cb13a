"""Every request that one service of the stack makes to another, and whether the template's policies allow it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ministack.core import iam_evaluator  # type: ignore[import-untyped]

from tests.unit.infra import delivery_edges, emr_edges
from tests.unit.infra.resolved_template import ACCOUNT, REGION, ResolvedTemplate

POLL_QUEUE = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
"""AWS Lambda Developer Guide, "Using Lambda with Amazon SQS"."""
RUN_JOB = ("glue:StartJobRun", "glue:GetJobRun", "glue:GetJobRuns", "glue:BatchStopJobRun")
"""AWS Step Functions Developer Guide, "Start an AWS Glue job with Step Functions", for ``.sync``."""
NESTED_RULE = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/StepFunctionsGetEventsForStepFunctionsExecutionRule"
RULE_ACTIONS = ("events:PutTargets", "events:PutRule", "events:DescribeRule")
TARGET_ACTIONS = {
    "lambda": "lambda:InvokeFunction",
    "sns": "sns:Publish",
    "sqs": "sqs:SendMessage",
    "states": "states:StartExecution",
}
WRITE_LOG = ("logs:CreateLogStream", "logs:PutLogEvents")
DELIVER_LOGS = (
    "logs:CreateLogDelivery",
    "logs:GetLogDelivery",
    "logs:UpdateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:DescribeResourcePolicies",
    "logs:DescribeLogGroups",
)
"""AWS Step Functions Developer Guide, "Using CloudWatch Logs to log execution history"."""
TRACE = tuple(f"xray:{name}" for name in ("PutTraceSegments", "PutTelemetryRecords"))
TRACE += tuple(f"xray:{name}" for name in ("GetSamplingRules", "GetSamplingTargets"))
"""AWS Step Functions Developer Guide, "Trace request data in Step Functions with AWS X-Ray"."""


@dataclass(frozen=True)
class Edge:
    """One request of a service to a resource, in the name of a role or, without one, of the service itself."""

    source: str
    """Logical id of the resource that causes the request."""
    source_arn: str
    service: str
    action: str
    resource: str
    role: str = ""
    """ARN of the role; empty: the resource's own policy has to let the service in."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Condition keys of the request, in lower case."""


@dataclass(frozen=True)
class Policies:
    """The policies of a template; a test may leave one statement out."""

    trust: Mapping[str, dict[str, Any]]
    """Role's ARN -> trust policy."""
    identity: Mapping[str, list[dict[str, Any]]]
    """Role's ARN -> its statements."""
    resource: Mapping[str, dict[str, Any]]
    """Resource's ARN -> its own policy."""

    @classmethod
    def of(cls, template: ResolvedTemplate) -> Policies:
        trust, identity, resource = {}, {}, {}
        for name, body in template.of_kind("AWS::IAM::Role").items():
            trust[template.arn(name)] = body["AssumeRolePolicyDocument"]
            inline = [policy["PolicyDocument"] for policy in body.get("Policies", [])]
            identity[template.arn(name)] = [item for document in inline for item in document["Statement"]]
        for body in template.of_kind("AWS::IAM::Policy").values():
            for role in body["Roles"]:
                identity[template.arn(role)] += body["PolicyDocument"]["Statement"]
        for kind, targets in (("AWS::SQS::QueuePolicy", "Queues"), ("AWS::SNS::TopicPolicy", "Topics")):
            for body in template.of_kind(kind).values():
                for target in body[targets]:
                    resource[target if ":" in target else template.arn(target)] = body["PolicyDocument"]
        return cls(trust, identity, resource)

    def allow(self, edge: Edge, source_account: str = ACCOUNT) -> bool:
        """Whether AWS would carry out the request, which the service makes for a resource of ``source_account``."""
        keys = {"aws:sourceaccount": source_account, "aws:sourcearn": edge.source_arn, **edge.keys}
        own = self.resource.get(edge.resource)
        if not edge.role:
            asked = _context("", "Service", edge.action, edge.resource, keys)
            return _decision(iam_evaluator.evaluate_resource_policy(own, asked, edge.service))
        name = edge.role.rpartition("/")[2]
        trusted = _context("", "Service", "sts:AssumeRole", edge.role, keys)
        if not _decision(iam_evaluator.evaluate_resource_policy(self.trust[edge.role], trusted, edge.service)):
            return False
        principal = f"arn:aws:sts::{ACCOUNT}:assumed-role/{name}/edge"
        asked = _context(principal, "AssumedRole", edge.action, edge.resource, dict(edge.keys))
        document = {"Statement": self.identity[edge.role]}
        result = iam_evaluator.evaluate(asked, [iam_evaluator.parse_policy_document(document)])
        if own is not None:
            # A key's policy has to allow even what a role's policies do.
            is_key = edge.action.startswith("kms:")
            result = iam_evaluator.combine_resource_policy(result, asked, own, ACCOUNT, required=is_key)
        return _decision(result)


def _decision(result: iam_evaluator.EvalResult) -> bool:
    return bool(result.decision == "Allow")


def _context(principal: str, kind: str, action: str, resource: str, keys: dict[str, str]) -> iam_evaluator.EvalContext:
    return iam_evaluator.EvalContext(
        principal, kind, ACCOUNT, action, resource, REGION, secure_transport=True, service_context=keys
    )


def edges(template: ResolvedTemplate) -> Iterator[Edge]:
    """Every edge of the template."""
    for name, body in template.resources.items():
        walk = EDGES.get(template.kind(name))
        if walk is not None:
            yield from walk(template, name, body)


def _alarm(template: ResolvedTemplate, name: str, body: Mapping[str, Any]) -> Iterator[Edge]:
    for topic in body.get("AlarmActions", ()):
        yield Edge(name, template.arn(name), "cloudwatch.amazonaws.com", "sns:Publish", topic)


def _notification(template: ResolvedTemplate, name: str, body: Mapping[str, Any]) -> Iterator[Edge]:
    for queue in body["NotificationConfiguration"]["QueueConfigurations"]:
        bucket = f"arn:aws:s3:::{body['BucketName']}"
        yield Edge(name, bucket, "s3.amazonaws.com", "sqs:SendMessage", queue["QueueArn"])


def _schedule(template: ResolvedTemplate, name: str, body: Mapping[str, Any]) -> Iterator[Edge]:
    target = body["Target"]
    for arn in (target["Arn"], target["DeadLetterConfig"]["Arn"]):
        action = TARGET_ACTIONS[arn.split(":")[2]]
        yield Edge(name, template.arn(name), "scheduler.amazonaws.com", action, arn, target["RoleArn"])


def _event_source(template: ResolvedTemplate, name: str, body: Mapping[str, Any]) -> Iterator[Edge]:
    function = next(item for item in template.of_kind("AWS::Lambda::Function") if item == body["FunctionName"])
    role = template.resources[function]["Role"]
    for action in POLL_QUEUE:
        yield Edge(name, template.arn(function), "lambda.amazonaws.com", action, body["EventSourceArn"], role)


def _function(template: ResolvedTemplate, name: str, body: Mapping[str, Any]) -> Iterator[Edge]:
    if "ManagedPolicyArns" in template.resources[body["Role"].rpartition("/")[2]]:
        return
    group = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{body['LoggingConfig']['LogGroup']}:log-stream:any"
    for action in WRITE_LOG:
        yield Edge(name, template.arn(name), "lambda.amazonaws.com", action, group, body["Role"])


def _job(template: ResolvedTemplate, name: str, body: Mapping[str, Any]) -> Iterator[Edge]:
    arguments = body["DefaultArguments"]
    files = [body["Command"]["ScriptLocation"], *(value for value in arguments.values() if value.startswith("s3://"))]
    for uri in files:
        arn, action = f"arn:aws:s3:::{uri.removeprefix('s3://')}", "s3:GetObject"
        if uri == arguments.get("--spark-event-logs-path"):
            arn, action = f"{arn}any", "s3:PutObject"
        yield Edge(name, template.arn(name), "glue.amazonaws.com", action, arn, body["Role"])
    for stream in ("output", "error"):
        group = f"{arguments['--custom-logGroup-prefix']}/{stream}"
        log = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}:log-stream:any"
        for action in WRITE_LOG:
            yield Edge(name, template.arn(name), "glue.amazonaws.com", action, log, body["Role"])


def _machine(template: ResolvedTemplate, name: str, body: Mapping[str, Any]) -> Iterator[Edge]:
    text = body["DefinitionString"]
    for placeholder, value in body["DefinitionSubstitutions"].items():
        text = text.replace(f"${{{placeholder}}}", value)
    definition = json.loads(text)
    keys_of = {
        "iam:PassRole": emr_edges.PASSED_TO,
    }
    everywhere = [(action, "*") for action in (*DELIVER_LOGS, *TRACE)]
    for action, resource in [*_requests_of_states(definition, template.arn(name), template), *everywhere]:
        keys = keys_of.get(action, {})
        yield Edge(name, template.arn(name), "states.amazonaws.com", action, resource, body["RoleArn"], keys)
    for arn, role, action, resource in emr_edges.requests_of_runs(definition):
        yield Edge(name, arn, "emr-serverless.amazonaws.com", action, resource, role)


def _requests_of_states(value: Any, machine: str, template: ResolvedTemplate) -> Iterator[tuple[str, str]]:
    """(action, resource) of every task and map, nested ones too."""
    if isinstance(value, list):
        for item in value:
            yield from _requests_of_states(item, machine, template)
    if not isinstance(value, dict):
        return
    if value.get("Type") == "Map" and value["ItemProcessor"]["ProcessorConfig"]["Mode"] == "DISTRIBUTED":
        yield from _executions(machine)
    integration = str(value.get("Resource", "")).removeprefix("arn:aws:states:::")
    if integration:
        yield from INTEGRATIONS[integration](value["Arguments"], template)
    for item in value.values():
        yield from _requests_of_states(item, machine, template)


def _executions(machine: str) -> Iterator[tuple[str, str]]:
    yield "states:StartExecution", machine
    execution = machine.replace(":stateMachine:", ":execution:")
    for action in ("states:DescribeExecution", "states:StopExecution", "states:RedriveExecution"):
        yield action, f"{execution}/Runs:any"


def _nested_execution(arguments: Mapping[str, Any], _: ResolvedTemplate) -> Iterator[tuple[str, str]]:
    machine = arguments["StateMachineArn"]
    yield "states:StartExecution", machine
    for action in ("states:DescribeExecution", "states:StopExecution"):
        yield action, f"{machine.replace(':stateMachine:', ':execution:')}:any"
    yield from ((action, NESTED_RULE) for action in RULE_ACTIONS)


def _index_of_plan(_: Mapping[str, Any], template: ResolvedTemplate) -> Iterator[tuple[str, str]]:
    # Bucket and key are in the state's input: a map reads the index of its execution's plan.
    control = next(name for name in template.of_kind("AWS::S3::Bucket") if name.startswith("StorageControl"))
    yield "s3:GetObject", f"{template.arn(control)}/plans/any/index.json"


INTEGRATIONS = {
    emr_edges.INTEGRATION: lambda arguments, _: emr_edges.requests_of_machine(arguments),
    "lambda:invoke": lambda arguments, _: [("lambda:InvokeFunction", arguments["FunctionName"])],
    "glue:startJobRun.sync": lambda arguments, _: [
        (action, f"arn:aws:glue:{REGION}:{ACCOUNT}:job/{arguments['JobName']}") for action in RUN_JOB
    ],
    "sns:publish": lambda arguments, _: [("sns:Publish", arguments["TopicArn"])],
    "states:startExecution.sync:2": _nested_execution,
    "s3:getObject": _index_of_plan,
}
EDGES = {
    "AWS::CloudWatch::Alarm": _alarm,
    "AWS::Glue::Job": _job,
    delivery_edges.KIND: lambda _, name, body: (Edge(*edge) for edge in delivery_edges.requests(name, body)),
    "AWS::Lambda::EventSourceMapping": _event_source,
    "AWS::Lambda::Function": _function,
    "AWS::Scheduler::Schedule": _schedule,
    "AWS::StepFunctions::StateMachine": _machine,
    "Custom::S3BucketNotifications": _notification,
}
"""Type of a resource that makes requests -> its edges."""
