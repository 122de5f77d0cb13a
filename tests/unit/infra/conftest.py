"""Two syntheses, checked by cdk-nag, for all tests of the template."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.synth import synth
from lake.settings import (
    AlarmSettings,
    BatchSettings,
    DatasetRule,
    DatasetUrgentSettings,
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


@dataclass(frozen=True)
class Assembly:
    """A cloud assembly: what ``cdk synth`` writes."""

    folder: Path
    settings: Settings

    @property
    def template(self) -> dict[str, Any]:
        return json.loads(next(self.folder.glob("*.template.json")).read_text())

    def resources(self, kind: str) -> dict[str, dict[str, Any]]:
        """Properties of all resources of a CloudFormation type, by logical id."""
        return {
            name: body.get("Properties", {})
            for name, body in self.template["Resources"].items()
            if body["Type"] == kind
        }

    def one(self, kind: str, part: str) -> dict[str, Any]:
        """Properties of the only resource of a type whose logical id contains ``part``."""
        found = [body for name, body in self.resources(kind).items() if part in name]
        assert len(found) == 1, f"{len(found)} resources of type {kind} have {part} in their id"
        return found[0]

    def statements(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """(logical id, statement) of every policy: of roles, buckets, queues and topics, and whom roles trust."""
        for name, body in self.template["Resources"].items():
            properties = body.get("Properties", {})
            documents = [
                properties.get("PolicyDocument"),
                properties.get("AssumeRolePolicyDocument"),
                *(p["PolicyDocument"] for p in properties.get("Policies", [])),
            ]
            for document in documents:
                for statement in (document or {}).get("Statement", []):
                    yield name, statement

    def grants(self) -> set[tuple[str, str, str]]:
        """(role, action, resource as JSON) of all that the policies of roles allow; roles as ``Routerroute``."""
        return {
            (policy[1], action, json.dumps(resource))
            for name, statement in self.statements()
            if statement["Effect"] == "Allow" and (policy := re.match(r"(\w+)Role(?:DefaultPolicy|GetObject)", name))
            for action in listed(statement["Action"])
            for resource in listed(statement["Resource"])
        }

    def allowed(self, action: str, part: str) -> set[str]:
        """The roles that may do ``action`` on a resource whose JSON contains ``part``."""
        return {role for role, allowed, resource in self.grants() if allowed == action and part in resource}

    def asset_folder(self, part: str) -> Path:
        """The staged folder of the code of the function whose logical id contains ``part``."""
        code = self.one("AWS::Lambda::Function", part)["Code"]
        return self.folder / f"asset.{Path(code['S3Key']).stem}"


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
        datasets=(DatasetRule("tagged", "tagged/$*", urgent=urgent), DatasetRule("{folder}")),
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
        verify=VerifySettings(share=0.01),
        records=RECORDS,
        alarms=AlarmSettings(email="data-team@example.com", daily_dollars=250),
        protection=ProtectionSettings(versions=True, deletion=True),
        spark=SparkSettings(ui_logs=True),
        tables=TablesSettings(compaction=True),
    )
    return Assembly(synth(settings, tmp_path_factory.mktemp("other"), checked=True), settings)
