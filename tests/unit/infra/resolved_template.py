"""A synthesized template with every reference replaced by the name or ARN that its resource gets on AWS."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import sha256
from typing import Any

from tests.unit.infra.conftest import listed

ACCOUNT = "111122223333"
REGION = "eu-central-1"
PSEUDO = {"AWS::AccountId": ACCOUNT, "AWS::Region": REGION, "AWS::Partition": "aws", "AWS::URLSuffix": "amazonaws.com"}
OWN_NAMES = {
    "AWS::Glue::Job": "Name",
    "AWS::KinesisFirehose::DeliveryStream": "DeliveryStreamName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::StepFunctions::StateMachine": "StateMachineName",
}
"""Types whose resources the template names itself; all others get their logical id as a name here."""
ARNS = {
    "AWS::DynamoDB::GlobalTable": "dynamodb:{place}:table/{name}",
    "AWS::EMRServerless::Application": "emr-serverless:{place}:/applications/{name}",
    "AWS::Glue::Job": "glue:{place}:job/{name}",
    "AWS::IAM::Role": "iam::{account}:role/{name}",
    "AWS::KinesisFirehose::DeliveryStream": "firehose:{place}:deliverystream/{name}",
    "AWS::Lambda::Function": "lambda:{place}:function:{name}",
    "AWS::Logs::LogGroup": "logs:{place}:log-group:{name}:*",
    "AWS::S3::Bucket": "s3:::{name}",
    "AWS::SNS::Topic": "sns:{place}:{name}",
    "AWS::SQS::Queue": "sqs:{place}:{name}",
    "AWS::StepFunctions::StateMachine": "states:{place}:stateMachine:{name}",
    "AWS::CloudWatch::Alarm": "cloudwatch:{place}:alarm:{name}",
    "AWS::Scheduler::Schedule": "scheduler:{place}:schedule/default/{name}",
}
REFERENCED_BY_ARN = {"AWS::SNS::Topic", "AWS::StepFunctions::StateMachine"}
"""Types whose ``Ref`` is the ARN; of a queue it is the URL, and nothing here needs that."""


@dataclass(frozen=True)
class ResolvedTemplate:
    """The resources of a template, as deployed in ``ACCOUNT`` and ``REGION``."""

    template: Mapping[str, Any]
    stack: str = ""
    """Name of the stack, for resources with names as long as CloudFormation's; empty: their logical ids."""

    @cached_property
    def resources(self) -> dict[str, dict[str, Any]]:
        """Properties by logical id."""
        return {name: self.value(body.get("Properties", {})) for name, body in self.template["Resources"].items()}

    def kind(self, name: str) -> str:
        return str(self.template["Resources"][name]["Type"])

    def of_kind(self, kind: str) -> dict[str, dict[str, Any]]:
        """Properties of all resources of a type, by logical id."""
        return {name: body for name, body in self.resources.items() if self.kind(name) == kind}

    def arn(self, name: str) -> str:
        """The ARN of a resource of the template."""
        form = ARNS[self.kind(name)]
        return "arn:aws:" + form.format(place=f"{REGION}:{ACCOUNT}", account=ACCOUNT, name=self.name(name))

    def name(self, name: str) -> str:
        """The name of a resource of the template: its own one, or one as CloudFormation makes it up."""
        made_up = f"{self.stack}-{name}"[:51] + f"-{sha256(name.encode()).hexdigest()[:12]}" if self.stack else name
        own = self.template["Resources"][name].get("Properties", {}).get(OWN_NAMES.get(self.kind(name), ""), made_up)
        return str(self.value(own))

    def may_read(self, role: str, uri: str) -> bool:
        """Whether the policy of the role whose logical id begins so allows ``s3:GetObject`` on an S3 URI."""
        return any(
            fnmatchcase(uri, f"s3://{resource.removeprefix('arn:aws:s3:::')}")
            for name, body in self.of_kind("AWS::IAM::Policy").items()
            if name.startswith(role)
            for statement in body["PolicyDocument"]["Statement"]
            if "s3:GetObject" in listed(statement["Action"])
            for resource in listed(statement["Resource"])
        )

    def value(self, value: Any) -> Any:
        """The value with all of CloudFormation's functions applied.

        Raises ``ValueError``: the template uses a function that is not known here.
        """
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if not isinstance(value, dict):
            return value
        if value.keys() == {"Ref"}:
            return self._referenced(value["Ref"])
        if value.keys() == {"Fn::GetAtt"}:
            name, attribute = value["Fn::GetAtt"]
            return self.arn(name) if attribute == "Arn" else f"{name}.{attribute}"
        if value.keys() == {"Fn::Join"}:
            separator, parts = value["Fn::Join"]
            return separator.join(self.value(parts))
        if value.keys() == {"Fn::Sub"}:
            return re.sub(r"\$\{([\w:]+)\}", lambda found: self._referenced(found[1]), value["Fn::Sub"])
        if len(value) == 1 and next(iter(value)).startswith("Fn::"):
            raise ValueError(f"{value} cannot be resolved: add the function here")
        return {key: self.value(item) for key, item in value.items()}

    def _referenced(self, name: str) -> str:
        if name in PSEUDO:
            return PSEUDO[name]
        if name not in self.template["Resources"]:
            return name
        if self.kind(name) in REFERENCED_BY_ARN:
            return self.arn(name)
        return self.name(name)
