"""Nobody may do more than the code does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infra.functions import SPECS
from infra.permissions import GRANTS_BY_FUNCTION
from tests.unit.infra.conftest import listed

if TYPE_CHECKING:
    from tests.unit.infra.conftest import Assembly

ROOT = Path(__file__).parents[3]
CODE = ("batch_job", "lake", "router", "streaming_job", "transform")
CALL = re.compile(r"\b(?:s3|glue)\.([a-z][a-z0-9_]+)\(")
PAGES = re.compile(r"get_paginator\(\"([a-z0-9_]+)\"")
NO_CALLS = {"get_paginator"}
NEEDS = {
    "abort_multipart_upload": {"s3:AbortMultipartUpload"},
    "batch_stop_job_run": {"glue:BatchStopJobRun"},
    "complete_multipart_upload": {"s3:PutObject"},
    "copy_object": {"s3:GetObject", "s3:PutObject"},
    "create_multipart_upload": {"s3:PutObject"},
    "create_table": {"glue:CreateTable"},
    "delete_object": {"s3:DeleteObject"},
    "get_job_run": {"glue:GetJobRun"},
    "get_job_runs": {"glue:GetJobRuns"},
    "get_object": {"s3:GetObject", "s3:GetObjectVersion"},
    "get_table": {"glue:GetTable"},
    "head_object": {"s3:GetObject"},
    "list_multipart_uploads": {"s3:ListBucketMultipartUploads"},
    "list_object_versions": {"s3:ListBucketVersions"},
    "list_objects_v2": {"s3:ListBucket"},
    "put_object": {"s3:PutObject"},
    "start_job_run": {"glue:StartJobRun"},
    "update_table": {"glue:UpdateTable"},
    "upload_part": {"s3:PutObject"},
}
"""What AWS asks for each call that the code makes."""


def test_no_statement_allows_an_action_by_wildcard(assembly: Assembly, other_assembly: Assembly) -> None:
    for name, statement in [*assembly.statements(), *other_assembly.statements()]:
        if statement["Effect"] == "Allow":
            wild = [action for action in listed(statement["Action"]) if "*" in action]
            assert not wild, f"{name} allows {wild}"
            assert "NotAction" not in statement


def test_only_refusals_of_plain_http_name_all_actions(assembly: Assembly) -> None:
    for name, statement in assembly.statements():
        if statement["Effect"] == "Deny":
            assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}, name


def test_everything_is_allowed_only_where_aws_knows_no_resource(assembly: Assembly) -> None:
    free = {
        action
        for _, statement in assembly.statements()
        if statement["Effect"] == "Allow" and "*" in listed(statement.get("Resource", []))
        for action in listed(statement["Action"])
    }
    assert {action.split(":")[0] for action in free} == {"logs", "xray", "cloudwatch"}
    assert not free & {"logs:PutLogEvents", "logs:CreateLogGroup"}


def test_the_ledger_is_never_scanned_nor_emptied(assembly: Assembly) -> None:
    actions = {action for _, statement in assembly.statements() for action in listed(statement["Action"])}
    assert "dynamodb:GetItem" in actions
    assert not actions & {"dynamodb:Scan", "dynamodb:DeleteItem", "dynamodb:DeleteTable", "dynamodb:BatchWriteItem"}


def test_only_the_jobs_and_the_sweep_touch_the_lake(assembly: Assembly) -> None:
    writers = {
        name
        for name, statement in assembly.statements()
        if statement["Effect"] == "Allow" and "StorageLake" in str(statement.get("Resource"))
    }
    assert {re.sub(r"DefaultPolicy\w+", "", name) for name in writers} == {"JobsRole", "RoutersweepRole"}


def test_every_call_of_the_code_is_allowed_and_nothing_more(assembly: Assembly) -> None:
    sources = [path.read_text() for package in CODE for path in (ROOT / package).rglob("*.py")]
    calls = {name for source in sources for pattern in (CALL, PAGES) for name in pattern.findall(source)} - NO_CALLS
    # Given the calls, each of which this table has to know.
    assert calls <= set(NEEDS), f"say what AWS asks for {calls - set(NEEDS)}"
    needed = {action for name in calls for action in NEEDS[name]}
    ours = re.compile(r"Router.*|JobsRole.*")
    allowed = {
        action
        for name, statement in assembly.statements()
        if ours.match(name)
        for action in listed(statement["Action"])
        if action.startswith(("s3:", "glue:"))
    }
    # Then our functions and jobs together may do this and nothing else.
    assert allowed == needed


def test_whoever_takes_a_selection_may_look_for_its_dataset_in_the_input(assembly: Assembly) -> None:
    lookers = {
        re.sub(r"RoleDefaultPolicy\w+", "", name)
        for name, statement in assembly.statements()
        if "s3:ListBucket" in listed(statement["Action"]) and "StorageInput" in str(statement.get("Resource"))
    }
    assert lookers == {"Routerplan", "Routerbackfill", "Routerpromote", "Jobs"}


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_function_has_its_handler_and_its_permissions(assembly: Assembly, spec) -> None:
    function = assembly.one("AWS::Lambda::Function", f"Router{spec.name.replace('_', '')}Function")
    assert function["Handler"] == f"router.{spec.name}.handler.handler"
    source = ROOT.joinpath(*function["Handler"].split(".")[:-1]).with_suffix(".py")
    assert re.search(r"^def handler\(", source.read_text(), re.MULTILINE)
    assert spec.name in GRANTS_BY_FUNCTION
