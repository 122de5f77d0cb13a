"""The stream lane on EMR Serverless in the template: its application, and rights in the place of those on Glue."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from infra.emr_serverless import STARTERS
from infra.quotas import needed_quotas
from infra.synth import synth
from lake.engines.emr_serverless import STREAM_LAUNCH, StreamLaunch
from lake.settings import BatchSettings, EmrSettings, EncryptionSettings, Settings, SparkSettings, StreamSettings
from local.engines.emr_serverless import Capacity, needed_capacity, spark_properties
from tests.unit.infra.conftest import Assembly, listed
from tests.unit.infra.resolved_template import ACCOUNT, REGION, ResolvedTemplate
from tests.unit.infra.service_edges import WRITE_EMR_LOG, Edge, Policies

KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
APPLICATION = "AWS::EMRServerless::Application"
URGENT_ATTRIBUTES = {
    ("Routerroute", f"s3:{name}")
    for name in ("GetObject", "GetObjectVersion", "GetObjectTagging", "GetObjectVersionTagging", "ListBucket")
}
POLICY = re.compile(r"DefaultPolicy\w{8}$")
STREAM = StreamSettings(jobs=2, engine="emr-serverless", emr_min_executors=2)


@pytest.fixture(scope="module")
def on_emr(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """Two streaming jobs on EMR Serverless, event logs and a KMS key; the batch lane has Flex. cdk-nag checks it."""
    encryption = EncryptionSettings(kms_key=KEY)
    settings = Settings(stage="same", stream=STREAM, spark=SparkSettings(ui_logs=True), encryption=encryption)
    return Assembly(synth(settings, tmp_path_factory.mktemp("on_emr"), checked=True), settings)


def grants(assembly: Assembly) -> set[tuple[str, str]]:
    return {(role, action) for role, action, _ in assembly.grants() if not action.startswith("kms:")}


def launches(assembly: Assembly) -> Iterator[tuple[str, StreamLaunch]]:
    """Logical id of a function, and what it is told."""
    for name, body in ResolvedTemplate(assembly.template).resources.items():
        variables = (body.get("Environment") or {}).get("Variables", {})
        if STREAM_LAUNCH in variables:
            yield name, StreamLaunch.from_text(variables[STREAM_LAUNCH])


def test_a_run_has_the_workers_of_the_settings(on_emr: Assembly) -> None:
    # When the service reads what a function sends
    _, launch = next(launches(on_emr))
    properties = spark_properties(launch.request("1", "job", "token"))
    # Then all workers have sizes that exist, and the driver keeps two executors
    assert needed_capacity(properties) == Capacity(vcpus=38, gigabytes=152)
    assert (properties["spark.driver.memory"], properties["spark.driver.memoryOverhead"]) == ("5g", "3g")
    scaling = {name.rpartition(".")[2]: value for name, value in properties.items() if ".dynamicAllocation." in name}
    assert scaling == {"enabled": "true", "minExecutors": "2", "maxExecutors": "9", "initialExecutors": "2"}


def test_a_run_may_read_its_code_and_write_its_logs(on_emr: Assembly) -> None:
    # Given what the service does with the run's role before its code runs, and when it has ended
    template = ResolvedTemplate(on_emr.template)
    _, launch = next(launches(on_emr))
    words = f"{launch.entry_point} {launch.arguments} {launch.spark_submit_parameters}"
    group = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{launch.log_group}:log-stream:any"
    asked = [
        *(("s3:GetObject", f"arn:aws:s3:::{uri.removeprefix('s3://')}") for uri in re.findall(r"s3://[^\s#]+", words)),
        ("s3:PutObject", f"arn:aws:s3:::{launch.log_uri.removeprefix('s3://')}any"),
        ("logs:DescribeLogGroups", "*"),
        *((action, group) for action in WRITE_EMR_LOG),
    ]
    assert len(asked) == 8
    # Then it may
    policies, service = Policies.of(template), "emr-serverless.amazonaws.com"
    source = f"arn:aws:emr-serverless:{REGION}:{ACCOUNT}:/applications/{launch.application}"
    edges = [Edge("EmrStream", source, service, action, resource, launch.role) for action, resource in asked]
    assert [edge.action for edge in edges if not policies.allow(edge)] == []


def test_the_roles_have_the_rights_of_glue_in_its_place(on_emr: Assembly, assembly: Assembly) -> None:
    # Given what differs from a stage on Glue, which also has a dataset with urgent tags and metadata
    on_glue = {item for item in grants(assembly) if item not in URGENT_ATTRIBUTES}
    added, removed = grants(on_emr) - on_glue, on_glue - grants(on_emr)
    starters = {f"Router{name.replace('_', '')}" for name in STARTERS}
    # Then those who start a run may do it there, list runs, and pass its role
    starts = {"emr-serverless:StartJobRun", "emr-serverless:ListJobRuns", "iam:PassRole"}
    expected = {(role, action) for role in starters for action in starts}
    # And one function may end them, and those who ask for the end of a run may ask
    expected.add(("Routerstreamcontrol", "emr-serverless:CancelJobRun"))
    watchers = ("Routerplan", "Routerrunstatus", "Routersweep", "Jobs", "EmrStream")
    expected |= {(role, "emr-serverless:GetJobRun") for role in watchers}
    assert {item for item in added if not item[0].startswith("EmrStream")} | {
        item for item in added if item[1] == "emr-serverless:GetJobRun"
    } == expected
    # And the role of the runs has what Glue's had, without the rights that belong to the services' logs
    of_glue = {action for role, action in on_glue if role == "Jobs" and not action.startswith("logs:")}
    of_emr = {action for role, action in grants(on_emr) if role == "EmrStream" and not action.startswith("logs:")}
    assert of_emr == of_glue | {"emr-serverless:GetJobRun"}
    # And what is gone are the streaming jobs of Glue, and the index of open manifests for its role
    assert removed == {
        *((role, action) for role in starters for action in ("glue:StartJobRun", "glue:GetJobRuns")),
        ("Routerstreamcontrol", "glue:BatchStopJobRun"),
        ("Jobs", "dynamodb:Query"),
    }


def test_the_inbox_is_read_by_the_role_of_the_streaming_runs_alone(on_emr: Assembly) -> None:
    assert on_emr.allowed("s3:DeleteObject", "/inbox*") == {"EmrStream"}


def test_a_run_uses_the_key_as_those_on_glue_do_and_its_logs_are_kept_under_it(on_emr: Assembly) -> None:
    def uses(role: str) -> list[str]:
        return sorted(
            json.dumps([body["Action"], body["Condition"]])
            for name, body in on_emr.statements()
            if name.startswith(f"{role}RoleDefaultPolicy") and str(listed(body["Action"])[0]).startswith("kms:")
        )

    assert uses("EmrStream") == uses("Jobs") != []
    assert on_emr.one("AWS::Logs::LogGroup", "EmrStreamLog")["KmsKeyId"] == KEY
    # And EMR Serverless keeps no event logs under a key of its own
    assert not any(launch.keeps_event_logs for _, launch in launches(on_emr))


def test_the_quotas_count_what_each_engine_needs() -> None:
    def needed(**fields: Any) -> dict[str, int]:
        return {item.code: item.needed for item in needed_quotas(Settings(stage="t", **fields))}

    runs, dpus, vcpus = "L-5E4153CA", "L-08F3B322", "L-D05C8A75"
    glue, emr = needed(), needed(stream=StreamSettings(engine="emr-serverless"))
    # Then the streaming job takes no run and no DPU of Glue, and its night may have both
    assert (glue[runs], glue[dpus]) == (50, 500)
    assert (emr[runs], emr[dpus], emr[vcpus]) == (50, 500, 38)
    both = BatchSettings(engines=("emr-serverless",))
    assert needed(stream=STREAM, batch=both, emr=EmrSettings(max_vcpus=64))[vcpus] == 64 + 76
