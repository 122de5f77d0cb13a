"""Every role has exactly the permissions that the code uses."""

import re
from pathlib import Path

from lake.settings.records import FAILED_RECORDS
from tests.e2e.test_used_permissions import explained
from tests.records import RECORDS
from tests.unit.infra.conftest import ACCOUNT, Assembly, listed

ROOT = Path(__file__).parents[3]
CODE = ("batch_job", "lake", "router", "streaming_job", "transform", "verify")
# A session's hooks are events as well.
CALL = re.compile(r"\b(s3|glue|events)\.(?!register\()([a-z][a-z0-9_]+)\(")
PAGES = re.compile(r"\b(s3|glue|events)\.get_paginator\(\"([a-z0-9_]+)\"")
ACTIONS: dict[str, set[str]] = {
    "complete_multipart_upload": {"s3:PutObject"},
    "create_multipart_upload": {"s3:PutObject"},
    "download_file": {"s3:GetObject"},
    "get_object": {"s3:GetObject", "s3:GetObjectVersion"},
    "get_object_tagging": {"s3:GetObjectTagging", "s3:GetObjectVersionTagging"},
    "get_paginator": set(),
    "head_bucket": {"s3:ListBucket"},
    "head_object": {"s3:GetObject"},
    "list_multipart_uploads": {"s3:ListBucketMultipartUploads"},
    "list_object_versions": {"s3:ListBucketVersions"},
    "list_objects_v2": {"s3:ListBucket"},
    "list_parts": {"s3:ListMultipartUploadParts"},
    "upload_part": {"s3:PutObject"},
}
"""The permissions that AWS requires for calls of the code, where the action is not named as the call."""


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
    groups = {name for name in assembly.resources("AWS::Logs::LogGroup") if name.startswith("Jobs")}
    written = {
        resource for role, action, resource in assembly.grants() if role == "Jobs" and action.startswith("logs:")
    }
    assert len(groups) == 2
    assert written == {assembly.arn(group) for group in groups}


def test_roles_use_only_buckets_of_their_account(assembly: Assembly, other_assembly: Assembly) -> None:
    # Given statements with a bucket ARN without an account: another account can own a bucket that was deleted here
    statements = [
        statement
        for stack in (assembly, other_assembly)
        for name, statement in stack.statements()
        # The names differ for CDK's own function that sets notifications, and for buckets
        if re.search("Role(DefaultPolicy|OverflowPolicy|GetObject)", name)
        and any(action.startswith("s3:") for action in listed(statement["Action"]))
    ]
    assert "s3:GetObjectTagging" in {action for statement in statements for action in statement["Action"]}
    # Then none applies to it
    own = {"StringEquals": {"aws:ResourceAccount": ACCOUNT}}
    assert [statement for statement in statements if statement.get("Condition") != own] == []


def test_no_service_acts_for_another_account(assembly: Assembly, other_assembly: Assembly) -> None:
    # Given the services that may act; three document no account condition, but Firehose has its external id
    without = {f"{name}.amazonaws.com" for name in ("lambda", "glue", "firehose")}
    found = [
        (service, name, statement)
        for name, statement in [*assembly.statements(), *other_assembly.statements()]
        if isinstance(principal := statement.get("Principal"), dict)
        for service in listed(principal.get("Service", []))
    ]
    # Then all others require the stack's account: another account can take a bucket's name once it is free
    assert {service.partition(".")[0] for service, _, _ in found} >= {"cloudwatch", "s3", "scheduler", "states"}
    for service, name, statement in found:
        account = statement.get("Condition", {}).get("StringEquals", {}).get("aws:SourceAccount")
        assert service in without or account == ACCOUNT, name


def test_a_role_is_passed_to_one_service_only(other_assembly: Assembly) -> None:
    passes = [item for _, item in other_assembly.statements() if "iam:PassRole" in listed(item["Action"])]
    assert len(passes) == 2
    for statement in passes:
        service = "emr-serverless" if "EmrRole" in str(statement["Resource"]) else "glue"
        assert statement["Condition"] == {"StringEquals": {"iam:PassedToService": f"{service}.amazonaws.com"}}


def test_a_deployment_leaves_running_jobs_their_files(assembly: Assembly) -> None:
    # Given the files of a deployment, the files of an earlier one, which differ by their hash, and another stage's
    uris = {
        uri
        for job in assembly.resources("AWS::Glue::Job").values()
        for uri in (job["Command"]["ScriptLocation"], *job["DefaultArguments"].values())
        if uri.startswith("s3://")
    }
    earlier = {re.sub("[0-9a-f]{64}", "0" * 64, uri) for uri in uris}
    others = {uri.replace("hybrid-router-test-ny/", "hybrid-router-test-ny2/") for uri in uris}
    assert len(uris) == len(others - uris) == 4
    assert earlier.isdisjoint(uris)
    # Then
    assert {uri for uri in uris | earlier | others if assembly.may_read("Jobs", uri)} == uris | earlier


def test_firehose_reads_its_source_and_writes_only_its_folders_and_its_log(other_assembly: Assembly) -> None:
    def of(role: str) -> set[tuple[str, str]]:
        return {
            (action.partition(":")[0], resource) for name, action, resource in other_assembly.grants() if name == role
        }

    clicks, payments = RECORDS
    bucket, place = "arn:aws:s3:::landing-zone-1", payments.msk_cluster
    logs = "arn:aws:logs:eu-central-1:111122223333:log-group:/aws/kinesisfirehose/hybrid-router-other-clicks:*"
    folders = {("s3", f"{bucket}/{folder}clicks/*") for folder in ("clicks/records/", FAILED_RECORDS)}
    assert of("Recordsclicks") == {("s3", bucket), ("kinesis", clicks.kinesis_stream), ("logs", logs), *folders}
    topic, group = (place.replace(":cluster/", f":{kind}/") for kind in ("topic", "group"))
    assert of("RecordspaymentsRead") == {
        ("kafka", place),
        ("kafka-cluster", place),
        ("kafka-cluster", f"{topic}/{payments.msk_topic}"),
        ("kafka-cluster", f"{group}/*"),
    }


def test_schedules_start_their_targets_and_keep_what_could_not_start(other_assembly: Assembly) -> None:
    targets = [body["Target"] for body in other_assembly.resources("AWS::Scheduler::Schedule").values()]
    actions = {"lambda": "lambda:InvokeFunction", "states": "states:StartExecution", "sqs": "sqs:SendMessage"}
    used = {arn for target in targets for arn in (target["Arn"], target["DeadLetterConfig"]["Arn"])}
    granted = {(action, arn) for role, action, arn in other_assembly.grants() if role == "Schedules"}
    assert granted == {(actions[arn.split(":")[2]], arn) for arn in used}
    assert {action for action, _ in granted} == set(actions.values())


def test_every_function_and_nothing_else_writes_to_its_log(other_assembly: Assembly) -> None:
    for name, body in other_assembly.resources("AWS::Lambda::Function").items():
        if name.startswith("Router"):
            for action in ("logs:CreateLogStream", "logs:PutLogEvents"):
                writers = other_assembly.allowed(action, body["LoggingConfig"]["LogGroup"])
                assert writers == {name.partition("Function")[0]}


def test_what_no_test_uses_is_granted_as_the_page_says(assembly: Assembly, other_assembly: Assembly) -> None:
    # Given the page's table of permissions that the local cloud cannot check, or never uses
    granted = {(f"{role}Role", action) for stack in (assembly, other_assembly) for role, action, _ in stack.grants()}
    assert explained() - granted == set()
    # And children of a Map Run are watched, stopped and redriven by their own form of an ARN
    for action in ("DescribeExecution", "StopExecution", "RedriveExecution"):
        assert "MachinesOvernight" in other_assembly.allowed(f"states:{action}", "-overnight/*")


def test_no_role_may_scan_the_ledger_or_delete_from_it(assembly: Assembly) -> None:
    actions = {action for _, statement in assembly.statements() for action in listed(statement["Action"])}
    assert "dynamodb:GetItem" in actions
    assert not actions & {"dynamodb:Scan", "dynamodb:DeleteItem", "dynamodb:DeleteTable", "dynamodb:BatchWriteItem"}


def test_only_the_jobs_and_the_sweep_have_access_to_the_lake_and_settle_lists_it(assembly: Assembly) -> None:
    allowed = {(role, action) for role, action, resource in assembly.grants() if "StorageLake" in resource}
    assert {role for role, _ in allowed} == {"Jobs", "Routersweep", "Routersettle"}
    assert {action for role, action in allowed if role == "Routersettle"} == {"s3:ListBucket"}


def test_every_call_of_the_code_is_allowed_and_nothing_more(assembly: Assembly, other_assembly: Assembly) -> None:
    sources = [path.read_text() for package in CODE for path in (ROOT / package).rglob("*.py")]
    calls = {call for source in sources for pattern in (CALL, PAGES) for call in pattern.findall(source)}
    needed = {
        action
        for service, name in calls
        for action in ACTIONS.get(name, {f"{service}:{name.title().replace('_', '')}"})
    }
    allowed = {
        action
        for stack in (assembly, other_assembly)
        for role, action, _ in stack.grants()
        if role.startswith(("Router", "Jobs")) and action.startswith(("s3:", "glue:", "events:"))
    }
    # Then functions and jobs together are allowed these actions and no others.
    assert allowed == needed


def test_only_jobs_and_functions_with_a_selection_may_list_the_input(
    assembly: Assembly, other_assembly: Assembly
) -> None:
    own = assembly.allowed("s3:ListBucket", "StorageInput")
    foreign = other_assembly.allowed("s3:ListBucket", "landing-zone-1") - {"Recordsclicks", "Recordspayments"}
    assert foreign == {"Routerplan", "Routerbackfill", "Routerpromote", "Routerreprocess", "Jobs", "Emr"}
    # And route, where tags or metadata make files urgent: it can distinguish a deleted object from a denied one
    assert own == (foreign - {"Emr"}) | {"Routerroute"}


def test_route_reads_objects_only_of_datasets_with_urgent_tags_or_metadata(
    assembly: Assembly, other_assembly: Assembly
) -> None:
    def reads(template: Assembly, bucket: str) -> set[tuple[str, str]]:
        return {
            (action, resource)
            for role, action, resource in template.grants()
            if role == "Routerroute" and bucket in resource and action.startswith("s3:GetObject")
        }

    found = reads(assembly, "StorageInput")
    kinds = ("", "Version", "Tagging", "VersionTagging")
    assert {action for action, _ in found} == {f"s3:GetObject{kind}" for kind in kinds}
    # The wildcards of the prefix tagged/$*/ stand for one character each.
    assert all("/tagged/??/*" in resource for _, resource in found)
    assert reads(other_assembly, "landing-zone-1") == set()


def test_roles_that_take_ownership_may_also_write_pointers_and_read_datasets(assembly: Assembly) -> None:
    owners = assembly.allowed("s3:PutObject", "/intents/*")
    # Given each function that adopts an arrival of the stream lane: it may write its pointer, including a backfill
    assert owners == {"Routerroute", "Routerbackfill", "Routerresubmit", "Routersweep"}
    # The lines of a resubmission are always in the batch lane
    assert owners - assembly.allowed("s3:PutObject", "/inbox/*") == {"Routerresubmit"}
    # Without this permission no file of a dataset that a key has created gets an owner
    assert owners <= assembly.allowed("dynamodb:BatchGetItem", "Ledger")


def test_both_engines_store_event_logs_where_the_setting_is_on(other_assembly: Assembly) -> None:
    # Given a stage with event logs, Glue and EMR Serverless
    # Then all Glue jobs have the path, which ends with a slash, in both forms: for Glue's page and for a history server
    jobs = [body["DefaultArguments"] for body in other_assembly.resources("AWS::Glue::Job").values()]
    (uri,) = {job["--spark-event-logs-path"] for job in jobs}
    assert re.fullmatch(r"s3://\S*Control\S*/spark-logs/", uri)
    forms = ("--enable-spark-ui", "--enable-spark-ui-legacy-path")
    assert {job.get(form) for job in jobs for form in forms} == {"true"}
    # And runs on EMR Serverless have it as well
    machine = other_assembly.one("AWS::StepFunctions::StateMachine", "MachinesOvernight")
    assert machine["DefinitionSubstitutions"]["EmrLogUri"] == uri
    # And both roles may write there
    assert other_assembly.allowed("s3:PutObject", "/spark-logs/*") == {"Jobs", "Emr"}


def test_functions_may_start_the_job_and_write_to_the_inbox_of_each_shard(other_assembly: Assembly) -> None:
    route = [(action, resource) for role, action, resource in other_assembly.grants() if role == "Routerroute"]
    for shard in ("", "-2", "-3"):
        assert any(action == "glue:StartJobRun" and resource.endswith(f"-stream{shard}") for action, resource in route)
        assert any(action == "s3:PutObject" and f"/inbox{shard}/*" in resource for action, resource in route)
