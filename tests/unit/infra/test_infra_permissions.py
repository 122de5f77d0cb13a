"""Every role has exactly the permissions that the code uses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from infra.functions import SPECS
from infra.permissions import GRANTS_BY_FUNCTION
from infra.storage import KEY_OF_REQUEST
from tests.unit.infra.conftest import Assembly, listed
from tests.unit.infra.resolved_template import ResolvedTemplate

ROOT = Path(__file__).parents[3]
CODE = ("batch_job", "lake", "router", "streaming_job", "transform", "verify")
CALL = re.compile(r"\b(?:s3|glue|events)\.([a-z][a-z0-9_]+)\(")
PAGES = re.compile(r"get_paginator\(\"([a-z0-9_]+)\"")
NOT_REQUESTS = {"get_paginator"}
ACTIONS_BY_CALL = {
    "abort_multipart_upload": {"s3:AbortMultipartUpload"},
    "batch_stop_job_run": {"glue:BatchStopJobRun"},
    "complete_multipart_upload": {"s3:PutObject"},
    "copy_object": {"s3:GetObject", "s3:PutObject"},
    "create_multipart_upload": {"s3:PutObject"},
    "create_table": {"glue:CreateTable"},
    "create_table_optimizer": {"glue:CreateTableOptimizer"},
    "delete_object": {"s3:DeleteObject"},
    "delete_table_optimizer": {"glue:DeleteTableOptimizer"},
    "download_file": {"s3:GetObject"},
    "get_bucket_versioning": {"s3:GetBucketVersioning"},
    "get_job_run": {"glue:GetJobRun"},
    "get_job_runs": {"glue:GetJobRuns"},
    "get_object": {"s3:GetObject", "s3:GetObjectVersion"},
    "get_object_tagging": {"s3:GetObjectTagging", "s3:GetObjectVersionTagging"},
    "get_table": {"glue:GetTable"},
    "head_bucket": {"s3:ListBucket"},
    "head_object": {"s3:GetObject"},
    "list_multipart_uploads": {"s3:ListBucketMultipartUploads"},
    "list_object_versions": {"s3:ListBucketVersions"},
    "list_objects_v2": {"s3:ListBucket"},
    "list_parts": {"s3:ListMultipartUploadParts"},
    "put_events": {"events:PutEvents"},
    "put_object": {"s3:PutObject"},
    "start_job_run": {"glue:StartJobRun"},
    "update_table": {"glue:UpdateTable"},
    "update_table_optimizer": {"glue:UpdateTableOptimizer"},
    "upload_part": {"s3:PutObject"},
}
"""The permissions that AWS requires for each call of the code."""


def test_no_statement_allows_an_action_by_wildcard(assembly: Assembly, other_assembly: Assembly) -> None:
    for name, statement in [*assembly.statements(), *other_assembly.statements()]:
        if statement["Effect"] == "Allow":
            wildcards = [action for action in listed(statement["Action"]) if "*" in action]
            assert not wildcards, f"{name} allows {wildcards}"
            assert "NotAction" not in statement


def test_denied_are_plain_http_and_writes_of_input_that_name_a_key(assembly: Assembly) -> None:
    plain_http, names_key = {"Bool": {"aws:SecureTransport": "false"}}, {"Null": {KEY_OF_REQUEST: "false"}}
    for name, statement in assembly.statements():
        if statement["Effect"] == "Deny":
            is_other_keys = name.startswith("StorageInput") and statement["Action"] == "s3:PutObject"
            assert statement["Condition"] == (names_key if is_other_keys else plain_http), name


def test_all_resources_are_allowed_only_for_actions_without_resources(assembly: Assembly) -> None:
    actions = {
        action
        for _, statement in assembly.statements()
        if statement["Effect"] == "Allow" and "*" in listed(statement.get("Resource", []))
        for action in listed(statement["Action"])
    }
    assert {action.split(":")[0] for action in actions} == {"logs", "servicequotas", "xray"}
    assert not actions & {"logs:PutLogEvents", "logs:CreateLogGroup"}


def test_the_jobs_write_only_to_the_log_groups_of_their_stack(assembly: Assembly) -> None:
    template = ResolvedTemplate(assembly.template)
    groups = {template.arn(name) for name in assembly.resources("AWS::Logs::LogGroup") if name.startswith("Jobs")}
    written = {
        template.value(resource)
        for name, statement in assembly.statements()
        if name.startswith("JobsRole")
        for resource in listed(statement["Resource"])
        if any(action.startswith("logs:") for action in listed(statement["Action"]))
    }
    assert len(groups) == 2
    assert written == groups


def test_no_role_may_scan_the_ledger_or_delete_from_it(assembly: Assembly) -> None:
    actions = {action for _, statement in assembly.statements() for action in listed(statement["Action"])}
    assert "dynamodb:GetItem" in actions
    assert not actions & {"dynamodb:Scan", "dynamodb:DeleteItem", "dynamodb:DeleteTable", "dynamodb:BatchWriteItem"}


def test_only_the_jobs_and_the_sweep_have_access_to_the_lake_and_settle_lists_it(assembly: Assembly) -> None:
    actions: dict[str, set[str]] = {}
    for name, statement in assembly.statements():
        if statement["Effect"] == "Allow" and "StorageLake" in str(statement.get("Resource")):
            actions.setdefault(re.sub(r"DefaultPolicy\w+", "", name), set()).update(listed(statement["Action"]))
    assert actions.keys() == {"JobsRole", "RoutersweepRole", "RoutersettleRole"}
    assert actions["RoutersettleRole"] == {"s3:ListBucket"}


def test_every_call_of_the_code_is_allowed_and_nothing_more(assembly: Assembly, other_assembly: Assembly) -> None:
    sources = [path.read_text() for package in CODE for path in (ROOT / package).rglob("*.py")]
    calls = {name for source in sources for pattern in (CALL, PAGES) for name in pattern.findall(source)} - NOT_REQUESTS
    # Given the calls of the code, all of them in the table.
    assert calls <= set(ACTIONS_BY_CALL), f"add the permissions for {calls - set(ACTIONS_BY_CALL)}"
    needed = {action for name in calls for action in ACTIONS_BY_CALL[name]}
    own_roles = re.compile(r"Router.*|JobsRole.*")
    allowed = {
        action
        for stack in (assembly, other_assembly)
        for name, statement in stack.statements()
        if own_roles.match(name)
        for action in listed(statement["Action"])
        if action.startswith(("s3:", "glue:", "events:"))
    }
    # Then functions and jobs together are allowed these actions and no others.
    assert allowed == needed


def test_only_jobs_and_functions_with_a_selection_may_list_the_input(
    assembly: Assembly, other_assembly: Assembly
) -> None:
    own, foreign = lists_input(assembly, "StorageInput"), lists_input(other_assembly, "landing-zone-1")
    records = {"Recordsclicks", "Recordspayments"}
    assert foreign - records == {"Routerplan", "Routerbackfill", "Routerpromote", "Routerreprocess", "Jobs", "Emr"}
    # And route where tags or metadata make files urgent: it tells a deleted one from a denied one
    assert own == (foreign - records - {"Emr"}) | {"Routerroute"}


def lists_input(assembly: Assembly, bucket: str) -> set[str]:
    return {
        re.sub(r"RoleDefaultPolicy\w+", "", name)
        for name, statement in assembly.statements()
        if "s3:ListBucket" in listed(statement["Action"]) and bucket in str(statement.get("Resource"))
    }


def test_route_reads_objects_only_of_datasets_with_urgent_tags_or_metadata(
    assembly: Assembly, other_assembly: Assembly
) -> None:
    def reads(template: Assembly, bucket: str) -> list[tuple[list[str], str]]:
        return [
            (listed(statement["Action"]), json.dumps(statement["Resource"]))
            for name, statement in template.statements()
            if name.startswith("RouterrouteRole")
            and bucket in str(statement.get("Resource"))
            and any(action.startswith("s3:GetObject") for action in listed(statement["Action"]))
        ]

    tags, metadata = reads(assembly, "StorageInput")
    assert tags[0] == ["s3:GetObjectTagging", "s3:GetObjectVersionTagging"]
    assert metadata[0] == ["s3:GetObject", "s3:GetObjectVersion"]
    # The wildcards of the prefix tagged/$* stand for one character each.
    assert all('"/tagged/??*"' in resource for _, resource in (tags, metadata))
    assert reads(other_assembly, "landing-zone-1") == []


def test_what_takes_ownership_may_also_write_pointers(assembly: Assembly) -> None:
    # Given the roles that may write below each prefix of the control bucket
    writers: dict[str, set[str]] = {"intents/": set(), "inbox/": set()}
    for name, statement in assembly.statements():
        if "s3:PutObject" in listed(statement["Action"]):
            for prefix, roles in writers.items():
                if f"/{prefix}*" in str(statement["Resource"]):
                    roles.add(re.sub(r"RoleDefaultPolicy\w+", "", name))
    # Then each function that adopts an arrival of the stream lane may write its pointer: a backfill as well
    assert {"Routerroute", "Routerbackfill", "Routerresubmit", "Routersweep"} == writers["intents/"]
    # The lines of a resubmission are always in the batch lane
    assert writers["intents/"] - writers["inbox/"] == {"Routerresubmit"}


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_function_has_its_handler_and_its_permissions(other_assembly: Assembly, spec) -> None:
    function = other_assembly.one("AWS::Lambda::Function", f"Router{spec.name.replace('_', '')}Function")
    assert function["Handler"] == f"router.{spec.module}.handler"
    source = ROOT.joinpath(*function["Handler"].split(".")[:-1]).with_suffix(".py")
    assert re.search(r"^def handler\(", source.read_text(), re.MULTILINE)
    assert spec.name in GRANTS_BY_FUNCTION


def test_a_stage_without_iceberg_tables_keeps_only_their_database(assembly: Assembly, other_assembly: Assembly) -> None:
    found = [
        [body["Type"] for name, body in item.template["Resources"].items() if "Tables" in name or "tables" in name]
        for item in (assembly, other_assembly)
    ]
    # Settings that are rolled back must not delete it, and its tables with it.
    assert found[0] == ["AWS::Glue::Database"]
    assert len(found[1]) >= 5


SCHEDULE = "AWS::Scheduler::Schedule"
MACHINE = "AWS::StepFunctions::StateMachine"


def actions_of(assembly: Assembly, role: str, resource: str) -> set[str]:
    """What a role may do with resources whose ARN contains ``resource``."""
    return {
        action
        for name, statement in assembly.statements()
        if name.startswith(role) and resource in str(statement.get("Resource"))
        for action in listed(statement["Action"])
    }


def test_nothing_of_it_is_created_without_a_share(assembly: Assembly) -> None:
    for kind in (SCHEDULE, MACHINE, "AWS::CloudWatch::Alarm", "AWS::IAM::Role"):
        assert not [name for name in assembly.resources(kind) if "Verify" in name], kind
    assert not actions_of(assembly, "JobsRole", "/verify/*")


def test_the_job_may_list_the_input_and_write_what_was_found(other_assembly: Assembly) -> None:
    assert "s3:ListBucketVersions" in actions_of(other_assembly, "JobsRole", "landing-zone-1")
    assert actions_of(other_assembly, "JobsRole", "/verify/*") == {"s3:PutObject"}


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


def test_functions_may_start_the_job_and_write_to_the_inbox_of_each_shard(other_assembly: Assembly) -> None:
    template = ResolvedTemplate(other_assembly.template)
    allowed: dict[str, set[str]] = {}
    for name, statement in other_assembly.statements():
        if name.startswith("RouterrouteRole"):
            for action in listed(statement["Action"]):
                resources = [str(template.value(resource)) for resource in listed(statement["Resource"])]
                allowed.setdefault(action, set()).update(resources)
    started = {resource.partition("-other-")[2] for resource in allowed["glue:StartJobRun"]}
    assert started == {"stream", "stream-2", "stream-3"}
    written = {resource.partition("/")[2] for resource in allowed["s3:PutObject"]}
    assert {"inbox/*", "inbox-2/*", "inbox-3/*"} <= written
