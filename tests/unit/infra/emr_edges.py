"""The requests that a state with ``emr-serverless:startJobRun.sync`` causes, and those of the job run itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.unit.infra.resolved_template import ACCOUNT, REGION

INTEGRATION = "emr-serverless:startJobRun.sync"
NOT_DEPLOYED = "not-deployed"
RUN_RULE = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/StepFunctionsGetEventsForEMRServerlessJobRule"
PASSED_TO = {"iam:passedtoservice": "emr-serverless.amazonaws.com"}
WRITE_LOG = ("logs:DescribeLogStreams", "logs:CreateLogStream", "logs:PutLogEvents")
"""Amazon EMR Serverless User Guide, "Logging and monitoring", for CloudWatch; and ``logs:DescribeLogGroups``."""
NO_LOG_URI = "none"
URI = re.compile(r"s3://\S+")


def application_arn(arguments: Mapping[str, Any]) -> str:
    name = arguments["ApplicationId"].removesuffix(".ApplicationId")
    return f"arn:aws:emr-serverless:{REGION}:{ACCOUNT}:/applications/{name}"


def requests_of_machine(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """AWS Step Functions Developer Guide, "Create and manage Amazon EMR Serverless applications", IAM policies."""
    if arguments["ApplicationId"] == NOT_DEPLOYED:
        return
    arn = application_arn(arguments)
    yield "emr-serverless:StartJobRun", arn
    yield "iam:PassRole", arguments["ExecutionRoleArn"]
    for action in ("GetJobRun", "CancelJobRun"):
        yield f"emr-serverless:{action}", f"{arn}/jobruns/any"
    yield from ((f"events:{action}", RUN_RULE) for action in ("PutTargets", "PutRule", "DescribeRule"))


def requests_of_runs(definition: Any) -> Iterator[tuple[str, str, str, str]]:
    """(application, role, action, resource) of the job runs before their code runs: they read files and write a log."""
    if isinstance(definition, dict) and str(definition.get("Resource", "")).endswith(INTEGRATION):
        arguments = definition["Arguments"]
        for action, resource in _requests_of_run(arguments):
            yield application_arn(arguments), arguments["ExecutionRoleArn"], action, resource
    elif isinstance(definition, dict):
        for item in definition.values():
            yield from requests_of_runs(item)


def _requests_of_run(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
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
    for action in WRITE_LOG:
        yield action, f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}:log-stream:any"
