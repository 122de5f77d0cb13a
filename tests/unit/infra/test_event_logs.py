"""Spark's event logs in the template: both engines store them below one prefix, only where the setting is on."""

from __future__ import annotations

import re

from tests.unit.infra.conftest import Assembly, listed
from tests.unit.infra.resolved_template import ResolvedTemplate

LEGACY, PATH = "--enable-spark-ui-legacy-path", "--spark-event-logs-path"


def writers(assembly: Assembly) -> dict[str, list[str]]:
    """Role -> actions on the event logs."""
    return {
        re.sub(r"RoleDefaultPolicy\w+", "", name): listed(statement["Action"])
        for name, statement in assembly.statements()
        if "/spark-logs/*" in str(statement.get("Resource"))
    }


def test_both_engines_store_event_logs_where_the_setting_is_on(other_assembly: Assembly) -> None:
    # Given a stage with event logs, Glue and EMR Serverless
    template = ResolvedTemplate(other_assembly.template)
    # Then both Glue jobs have the path, which ends with a slash, in the form for a history server alone
    jobs = [
        body["DefaultArguments"] for name, body in template.resources.items() if re.match("Jobs(Stream|Batch)", name)
    ]
    uris = {job[PATH] for job in jobs}
    (uri,) = uris
    assert re.fullmatch(r"s3://\S*Control\S*/spark-logs/", uri)
    assert {job[LEGACY] for job in jobs} == {"true"}
    assert not any("--enable-spark-ui" in job for job in jobs)
    # And runs on EMR Serverless the same
    machine = next(body for name, body in template.resources.items() if name.startswith("MachinesOvernightMachine"))
    assert machine["DefinitionSubstitutions"]["EmrLogUri"] == uri
    # And both roles may write there, and nothing else
    assert writers(other_assembly) == {"Jobs": ["s3:PutObject"], "Emr": ["s3:PutObject"]}


def test_nothing_is_stored_or_allowed_without_the_setting(assembly: Assembly) -> None:
    for part in ("JobsStream", "JobsBatch"):
        assert not {LEGACY, PATH} & assembly.one("AWS::Glue::Job", part)["DefaultArguments"].keys()
    machine = assembly.one("AWS::StepFunctions::StateMachine", "MachinesOvernight")
    assert machine["DefinitionSubstitutions"]["EmrLogUri"] == "not-deployed"
    assert writers(assembly) == {}
