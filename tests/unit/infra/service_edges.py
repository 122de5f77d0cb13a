"""Every request that one service of the stack makes to another, and whether the template's policies allow it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ministack.core import iam_evaluator  # type: ignore[import-untyped]

from local.emulator_patches.delivery_streams import READ_ACTIONS
from local.emulator_patches.identities.encryption_keys import ACTIONS, DECRYPT, GENERATE, LOG_ACTIONS
from local.emulator_patches.identities.state_machines import rights_of
from local.emulator_patches.state_machines import Right
from local.engines import emr_serverless, glue
from tests.unit.infra.resolved_template import ACCOUNT, REGION, ResolvedTemplate

POLL_QUEUE = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
"""AWS Lambda Developer Guide, "Using Lambda with Amazon SQS"."""
TARGET_ACTIONS = {
    "lambda": "lambda:InvokeFunction",
    "sns": "sns:Publish",
    "sqs": "sqs:SendMessage",
    "states": "states:StartExecution",
}
WRITE_LOG = ("logs:CreateLogStream", "logs:PutLogEvents")


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
    for right in _rights_of_states(definition, template.arn(name), template):
        keys = right.conditions
        yield Edge(
            name, template.arn(name), "states.amazonaws.com", right.action, right.resource, body["RoleArn"], keys
        )
    for arn, role, action, resource in requests_of_emr_runs(definition):
        yield Edge(name, arn, "emr-serverless.amazonaws.com", action, resource, role)


def _rights_of_states(value: Any, machine: str, template: ResolvedTemplate) -> Iterator[Right]:
    """What every task and map needs, nested ones too."""
    if isinstance(value, list):
        for item in value:
            yield from _rights_of_states(item, machine, template)
    if not isinstance(value, dict):
        return
    if value.get("Type") == "Map" and value["ItemProcessor"]["ProcessorConfig"]["Mode"] == "DISTRIBUTED":
        yield Right("states:StartExecution", machine)
        execution = f"{machine.replace(':stateMachine:', ':execution:')}/Runs:any"
        for action in ("DescribeExecution", "StopExecution", "RedriveExecution"):
            yield Right(f"states:{action}", execution)
    if resource := str(value.get("Resource", "")):
        yield from _rights_of_task(resource, value["Arguments"], template)
    for item in value.values():
        yield from _rights_of_states(item, machine, template)


def _rights_of_task(resource: str, arguments: Mapping[str, Any], template: ResolvedTemplate) -> list[Right]:
    """What the local cloud asks for as well; the reader of a map is checked elsewhere there."""
    if resource.endswith("s3:getObject"):
        # Bucket and key are in the state's input: a map reads the index of its execution's plan.
        control = next(name for name in template.of_kind("AWS::S3::Bucket") if name.startswith("StorageControl"))
        return [Right("s3:GetObject", f"{template.arn(control)}/plans/any/index.json")]
    if arguments.get("ApplicationId") == NOT_DEPLOYED:
        return []
    if "glue:" in resource:
        return glue.rights(resource, dict(arguments))[1]
    if "emr-serverless:" in resource:
        application = arguments["ApplicationId"].removesuffix(".ApplicationId")
        return emr_serverless.rights(resource, {**arguments, "ApplicationId": application})[1]
    asked = rights_of(resource, dict(arguments))[1]
    assert asked, f"the local cloud does not know what {resource} needs"
    return asked


EMR_INTEGRATION = "emr-serverless:startJobRun.sync"
NOT_DEPLOYED = "not-deployed"
WRITE_EMR_LOG = ("logs:DescribeLogStreams", "logs:CreateLogStream", "logs:PutLogEvents")
"""Amazon EMR Serverless User Guide, "Logging and monitoring", for CloudWatch; and ``logs:DescribeLogGroups``."""
NO_LOG_URI = "none"
URI = re.compile(r"s3://\S+")


def application_arn(arguments: Mapping[str, Any]) -> str:
    name = arguments["ApplicationId"].removesuffix(".ApplicationId")
    return f"arn:aws:emr-serverless:{REGION}:{ACCOUNT}:/applications/{name}"


def requests_of_emr_runs(definition: Any) -> Iterator[tuple[str, str, str, str]]:
    """(application, role, action, resource) of the job runs before their code runs: they read files and write a log."""
    if isinstance(definition, dict) and str(definition.get("Resource", "")).endswith(EMR_INTEGRATION):
        arguments = definition["Arguments"]
        for action, resource in _requests_of_emr_run(arguments):
            yield application_arn(arguments), arguments["ExecutionRoleArn"], action, resource
    elif isinstance(definition, dict):
        for item in definition.values():
            yield from requests_of_emr_runs(item)


def _requests_of_emr_run(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if arguments["ApplicationId"] == NOT_DEPLOYED:
        return
    submit = arguments["JobDriver"]["SparkSubmit"]
    for text in (submit["EntryPoint"], submit["EntryPointArguments"], submit["SparkSubmitParameters"]):
        for uri in URI.findall(text.replace("'", " ").replace("=", " ").replace("#", " ")):
            yield "s3:GetObject", f"arn:aws:s3:::{uri.removeprefix('s3://')}"
    monitoring = arguments["ConfigurationOverrides"]["MonitoringConfiguration"]
    group, uri = (re.findall(rf"'{name}': '([^']*)'", monitoring)[0] for name in ("LogGroupName", "LogUri"))
    if uri != NO_LOG_URI:
        yield "s3:PutObject", f"arn:aws:s3:::{uri.removeprefix('s3://')}any"
    yield "logs:DescribeLogGroups", "*"
    for action in WRITE_EMR_LOG:
        yield action, f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}:log-stream:any"


DELIVERY_STREAM = "AWS::KinesisFirehose::DeliveryStream"
FIREHOSE = "firehose.amazonaws.com"
READ_CLUSTER = (
    "kafka:GetBootstrapBrokers",
    "kafka:DescribeCluster",
    "kafka:DescribeClusterV2",
    "kafka-cluster:Connect",
)
READ_TOPIC = ("DescribeTopic", "DescribeTopicDynamicConfiguration", "ReadData")
OF_BUCKET = ("GetBucketLocation", "ListBucket", "ListBucketMultipartUploads")
OF_OBJECT = ("AbortMultipartUpload", "GetObject", "PutObject")
ASSUMED_FOR = {"sts:externalid": ACCOUNT}


def _delivery_stream(_: ResolvedTemplate, name: str, body: Mapping[str, Any]) -> Iterator[Edge]:
    for action, resource, role, keys in _requests_of_delivery(body):
        yield Edge(name, name, FIREHOSE, action, resource, role, keys)


def _requests_of_delivery(body: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, str]]]:
    target = body["ExtendedS3DestinationConfiguration"]
    role = target["RoleARN"]
    for action in OF_BUCKET:
        yield f"s3:{action}", target["BucketARN"], role, ASSUMED_FOR
    for prefix in (target["Prefix"], target["ErrorOutputPrefix"]):
        key = f"{prefix.partition('!{')[0]}2026/11/23/10/any"
        for action in OF_OBJECT:
            yield f"s3:{action}", f"{target['BucketARN']}/{key}", role, ASSUMED_FOR
    log = target["CloudWatchLoggingOptions"]
    group = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{log['LogGroupName']}"
    yield "logs:PutLogEvents", f"{group}:log-stream:{log['LogStreamName']}", role, ASSUMED_FOR
    if kinesis := body.get("KinesisStreamSourceConfiguration"):
        for action in READ_ACTIONS:
            yield action, kinesis["KinesisStreamARN"], kinesis["RoleARN"], ASSUMED_FOR
    if msk := body.get("MSKSourceConfiguration"):
        yield from _requests_of_topic(msk)


def _requests_of_topic(msk: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, str]]]:
    cluster, reader = msk["MSKClusterARN"], msk["AuthenticationConfiguration"]["RoleARN"]
    place, _, name = cluster.partition(":cluster/")
    for action in READ_CLUSTER:
        yield action, cluster, reader, {}
    for action in READ_TOPIC:
        yield f"kafka-cluster:{action}", f"{place}:topic/{name}/{msk['TopicName']}", reader, {}
    yield "kafka-cluster:DescribeGroup", f"{place}:group/{name}/any", reader, {}


KEY_ACTIONS = {**ACTIONS, "s3:PutObject": (GENERATE, DECRYPT)}
"""Action on an encrypted resource -> actions on its key."""


def key_edges(template: ResolvedTemplate, key: str) -> Iterator[Edge]:
    """Every request to the key that a service makes, in its own name or in that of a role."""
    encrypted = {
        template.arn(name)
        for kind in ("AWS::SQS::Queue", "AWS::SNS::Topic", "AWS::S3::Bucket")
        for name in template.of_kind(kind)
    }
    for edge in edges(template):
        if edge.resource.partition("/")[0] in encrypted:
            via = {**edge.keys, "kms:viaservice": f"{edge.action.partition(':')[0]}.{REGION}.amazonaws.com"}
            for action in KEY_ACTIONS.get(edge.action, ()):
                yield Edge(edge.source, edge.source_arn, edge.service, action, key, edge.role, via)
    for name in template.of_kind("AWS::Logs::LogGroup"):
        arn = template.arn(name).removesuffix(":*")
        for action in LOG_ACTIONS:
            context = {"kms:encryptioncontext:aws:logs:arn": arn}
            yield Edge(name, arn, f"logs.{REGION}.amazonaws.com", action, key, "", context)


EDGES = {
    "AWS::CloudWatch::Alarm": _alarm,
    "AWS::Glue::Job": _job,
    DELIVERY_STREAM: _delivery_stream,
    "AWS::Lambda::EventSourceMapping": _event_source,
    "AWS::Lambda::Function": _function,
    "AWS::Scheduler::Schedule": _schedule,
    "AWS::StepFunctions::StateMachine": _machine,
    "Custom::S3BucketNotifications": _notification,
}
"""Type of a resource that makes requests -> its edges."""
