"""Two syntheses, checked by cdk-nag, for all tests of the template."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from infra.synth import synth
from lake.settings import (
    AlarmSettings,
    BatchSettings,
    DatasetRule,
    DatasetUrgentSettings,
    EmrSettings,
    InputSettings,
    PeakSettings,
    ProtectionSettings,
    ScheduleSettings,
    Settings,
    SparkSettings,
    StreamSettings,
    TablesSettings,
    VerifySettings,
)
from tests.records import RECORDS

ACCOUNT = "111122223333"
REGION = "eu-central-1"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
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
class Assembly:
    """A cloud assembly: the output of ``cdk synth``, deployed in ``ACCOUNT`` and ``REGION``.

    Every reference in its resources is replaced by the name or ARN of the deployed resource.
    """

    folder: Path
    settings: Settings
    stack: str = ""
    """Name of the stack, for resources with names as long as CloudFormation's; empty: their logical ids."""

    @property
    def template(self) -> dict[str, Any]:
        """The template as written."""
        return json.loads(next(self.folder.glob("*.template.json")).read_text())

    @cached_property
    def _written(self) -> dict[str, dict[str, Any]]:
        return dict(self.template["Resources"])

    @cached_property
    def _properties(self) -> dict[str, dict[str, Any]]:
        return {name: self._value(body.get("Properties", {})) for name, body in self._written.items()}

    def resources(self, kind: str) -> dict[str, dict[str, Any]]:
        """Properties of all resources of a CloudFormation type, by logical id."""
        return {name: body for name, body in self._properties.items() if self._written[name]["Type"] == kind}

    def one(self, kind: str, part: str) -> dict[str, Any]:
        """Properties of the only resource of a type whose logical id contains ``part``."""
        found = [body for name, body in self.resources(kind).items() if part in name]
        assert len(found) == 1, f"{len(found)} resources of type {kind} have {part} in their id"
        return found[0]

    def arn(self, name: str) -> str:
        """The ARN of a resource by its logical id."""
        form = ARNS[self._written[name]["Type"]]
        return "arn:aws:" + form.format(place=f"{REGION}:{ACCOUNT}", account=ACCOUNT, name=self.name(name))

    def name(self, name: str) -> str:
        """The name of a resource by its logical id: its own, or one in the form that CloudFormation generates."""
        body = self._written[name]
        made_up = f"{self.stack}-{name}"[:51] + f"-{sha256(name.encode()).hexdigest()[:12]}" if self.stack else name
        return str(self._value(body.get("Properties", {}).get(OWN_NAMES.get(body["Type"], ""), made_up)))

    def statements(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """(logical id, statement) of every policy: of roles, buckets, queues and topics, and of the trust of roles."""
        for name, properties in self._properties.items():
            documents = [
                properties.get("PolicyDocument"),
                properties.get("AssumeRolePolicyDocument"),
                *(p["PolicyDocument"] for p in properties.get("Policies", [])),
            ]
            for document in documents:
                for statement in (document or {}).get("Statement", []):
                    yield name, statement

    def grants(self) -> set[tuple[str, str, str]]:
        """(role, action, resource) of every permission in the roles' policies; roles as ``Routerroute``."""
        return {
            (policy[1], action, resource)
            for name, statement in self.statements()
            if statement["Effect"] == "Allow" and (policy := re.match(r"(\w+)Role(?:DefaultPolicy|GetObject)", name))
            for action in listed(statement["Action"])
            for resource in listed(statement["Resource"])
        }

    def allowed(self, action: str, part: str) -> set[str]:
        """The roles that may do ``action`` on a resource whose ARN contains ``part``."""
        return {role for role, allowed, resource in self.grants() if allowed == action and part in resource}

    def may_read(self, role: str, uri: str) -> bool:
        """Whether ``s3:GetObject`` on an S3 URI is allowed to the role, named as in ``grants``."""
        return any(
            fnmatchcase(uri, f"s3://{resource.removeprefix('arn:aws:s3:::')}")
            for name, action, resource in self.grants()
            if (name, action) == (role, "s3:GetObject")
        )

    def asset_folder(self, part: str) -> Path:
        """The staged folder of the code of the function whose logical id contains ``part``."""
        code = self.one("AWS::Lambda::Function", part)["Code"]
        return self.folder / f"asset.{Path(code['S3Key']).stem}"

    def _value(self, value: Any) -> Any:
        """The value with all of CloudFormation's functions applied.

        Raises ``ValueError`` if the template uses an unknown function.
        """
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if not isinstance(value, dict):
            return value
        if value.keys() == {"Ref"}:
            return self._referenced(value["Ref"])
        if value.keys() == {"Fn::GetAtt"}:
            name, attribute = value["Fn::GetAtt"]
            return self.arn(name) if attribute == "Arn" else f"{name}.{attribute}"
        if value.keys() == {"Fn::Join"}:
            separator, parts = value["Fn::Join"]
            return separator.join(self._value(parts))
        if value.keys() == {"Fn::Sub"}:
            return re.sub(r"\$\{([\w:]+)\}", lambda found: self._referenced(found[1]), value["Fn::Sub"])
        if len(value) == 1 and next(iter(value)).startswith("Fn::"):
            raise ValueError(f"{value} cannot be resolved: add the function here")
        return {key: self._value(item) for key, item in value.items()}

    def _referenced(self, name: str) -> str:
        if name in PSEUDO:
            return PSEUDO[name]
        if name not in self._written:
            return name
        if self._written[name]["Type"] in REFERENCED_BY_ARN:
            return self.arn(name)
        return self.name(name)


def listed(value: Any) -> list[Any]:
    """The value as a list: CloudFormation writes a list of one element as this element."""
    return value if isinstance(value, list) else [value]


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """A stage with Flex in New York's time zone, and a dataset whose files are urgent by their tags or metadata.

    Its synthesis fails if a finding of cdk-nag has no reason.
    """
    urgent = DatasetUrgentSettings(tags=("priority=high",), metadata=("priority=high",))
    settings = Settings(
        stage="test_ny",
        time_zone="America/New_York",
        datasets=(DatasetRule("tagged", "tagged/$*/", urgent=urgent), DatasetRule("{folder}")),
        batch=BatchSettings(max_runs=7, worker_type="G.2X", workers=4, run_timeout_minutes=150),
        schedule=ScheduleSettings(overnight="cron(30 21 * * ? *)", watch_seconds=40),
    )
    return Assembly(synth(settings, tmp_path_factory.mktemp("checked"), checked=True), settings)


@pytest.fixture(scope="session")
def other_assembly(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """A stage with an existing input bucket, EMR Serverless, a scheduled verification, a budget, records of Kinesis and
    Kafka, event logs, three streaming jobs and an Iceberg table; without Flex and peak."""
    settings = Settings(
        stage="other",
        input=InputSettings(bucket="landing-zone-1"),
        datasets=(DatasetRule("orders", "orders/", table="iceberg"), DatasetRule("{folder}")),
        stream=StreamSettings(jobs=3),
        peak=PeakSettings(hours=()),
        batch=BatchSettings(engines=("glue", "emr-serverless"), worker_type="G.2X", workers=5),
        emr=EmrSettings(architecture="arm64"),
        verify=VerifySettings(share=0.01),
        records=RECORDS,
        alarms=AlarmSettings(email="data-team@example.com", daily_dollars=250),
        protection=ProtectionSettings(versions=True, deletion=True),
        spark=SparkSettings(ui_logs=True),
        tables=TablesSettings(compaction=True),
    )
    return Assembly(synth(settings, tmp_path_factory.mktemp("other"), checked=True), settings)
