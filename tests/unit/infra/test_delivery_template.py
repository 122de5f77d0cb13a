"""Delivery streams in the template: only where a setting names them, with the keys that the rules take, and alarms."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from lake.manifest import Lane, ObjectVersion
from lake.settings.records import FAILED_RECORDS
from router.route.decide_lane import decide_lane
from tests.records import RECORDS
from tests.unit.infra.conftest import Assembly
from tests.unit.infra.resolved_template import ResolvedTemplate
from tests.unit.infra.service_edges import DELIVERY_STREAM

ALARM = "AWS::CloudWatch::Alarm"
CLICKS, PAYMENTS = RECORDS


def delivery(assembly: Assembly, name: str) -> dict[str, Any]:
    streams = ResolvedTemplate(assembly.template).of_kind(DELIVERY_STREAM).values()
    (found,) = [body for body in streams if body["DeliveryStreamName"] == f"hybrid-router-other-{name}"]
    return found


def test_a_stage_without_records_has_nothing_of_it(assembly: Assembly) -> None:
    assert assembly.resources(DELIVERY_STREAM) == {}
    assert not [name for name in assembly.template["Resources"] if "Record" in name]
    assert "Records" not in assembly.template["Outputs"]


def test_the_rules_take_the_keys_and_not_those_of_errors(other_assembly: Assembly) -> None:
    now = datetime(2026, 11, 23, 12, tzinfo=UTC)
    for record in (CLICKS, PAYMENTS):
        target = delivery(other_assembly, record.name)["ExtendedS3DestinationConfiguration"]
        for field, expected in (("Prefix", (Lane.BATCH, record.dataset)), ("ErrorOutputPrefix", (None, None))):
            key = re.sub(r"!\{[^}]*\}", "any", target[field]) + f"x-1-2026{target['FileExtension']}"
            file = ObjectVersion("landing-zone-1", key, "e", 1, "", None)
            decision = decide_lane(file, other_assembly.settings, now)
            assert (decision.lane, decision.dataset) == expected
        assert target["ErrorOutputPrefix"].startswith(f"{FAILED_RECORDS}{record.name}/")
        # Amazon Data Firehose Developer Guide, "Understand custom prefixes": required in an expression for errors
        assert "!{firehose:error-output-type}" in target["ErrorOutputPrefix"]


def test_a_delivery_stream_is_made_after_the_policies_of_its_roles(other_assembly: Assembly) -> None:
    resources = other_assembly.template["Resources"]
    for name in other_assembly.resources(DELIVERY_STREAM):
        policies = {item for item in resources[name]["DependsOn"] if resources[item]["Type"] == "AWS::IAM::Policy"}
        own = {
            item
            for item in other_assembly.resources("AWS::IAM::Policy")
            if item.startswith(name.partition("Stream")[0])
        }
        assert policies == own != set()
