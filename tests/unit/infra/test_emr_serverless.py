"""EMR Serverless in the template: only if a setting allows it, bounded, and with permissions that replace Glue's."""

import re

import pytest

from infra.emr_serverless import STARTERS
from infra.synth import synth
from lake.engines.description import Units
from lake.engines.emr_serverless import STREAM_LAUNCH, EmrLaunch
from lake.layout import SPARK_LOGS
from lake.settings import EncryptionSettings, Settings, SparkSettings, StreamSettings
from local.engines.emr_serverless import needed_capacity, spark_properties
from tests.unit.infra.conftest import KEY, Assembly

APPLICATION = "AWS::EMRServerless::Application"
WATCHERS = {"Routerplan", "Routerrunstatus", "Routersweep", "Jobs", "Emr"}
"""The roles of the code that asks whether the holder of a lease has ended."""


def actions_by_role(assembly: Assembly) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for role, action, _ in assembly.grants():
        if action.startswith("emr-serverless:"):
            found.setdefault(role, set()).add(action.partition(":")[2])
    return found


def test_a_run_has_the_workers_of_the_settings(other_assembly: Assembly) -> None:
    # Given the arguments that the state machine passes
    machine = other_assembly.one("AWS::StepFunctions::StateMachine", "MachinesOvernight")
    text = machine["DefinitionSubstitutions"]["EmrSparkSubmitParameters"]
    # When the service reads them, with the workers of a plan
    text += " --conf spark.dynamicAllocation.maxExecutors=4"
    properties = spark_properties(
        {"jobDriver": {"sparkSubmit": {"entryPoint": "main.py", "sparkSubmitParameters": text}}}
    )
    # Then there are 5 workers of a size that exists, with as much memory outside the heap as on Glue
    assert needed_capacity(properties) == Units(vcpu=40, gb=160)
    assert (properties["spark.executor.memory"], properties["spark.executor.memoryOverhead"]) == ("20g", "12g")
    assert properties["spark.speculation"] == "true"


def test_only_the_machine_starts_runs_and_only_lease_take_over_watches_them(other_assembly: Assembly) -> None:
    expected = {role: {"GetJobRun"} for role in WATCHERS}
    expected["MachinesOvernight"] = {"StartJobRun", "GetJobRun", "CancelJobRun"}
    assert actions_by_role(other_assembly) == expected


def test_a_run_may_do_what_glues_batch_job_does_and_nothing_of_the_stream(other_assembly: Assembly) -> None:
    # Given the statements of both roles, except for their own service and log groups
    def of(role: str) -> set[tuple[str, str]]:
        return {
            (action, resource)
            for name, action, resource in other_assembly.grants()
            if name == role and not action.startswith("logs:")
        }

    # Then Glue's role has in addition the inbox, and what a verification needs
    assert of("Emr") < of("Jobs")
    more = {resource for _, resource in of("Jobs") - of("Emr")}
    assert all(
        any(part in resource for part in ("/inbox", "/verify", "/divisions", "/results", "Ledger", "landing-zone-1"))
        for resource in more
    ), more


URGENT_ATTRIBUTES = {
    ("Routerroute", f"s3:{name}")
    for name in ("GetObject", "GetObjectVersion", "GetObjectTagging", "GetObjectVersionTagging", "ListBucket")
}
STREAM = StreamSettings(jobs=2, engine="emr-serverless", emr_min_executors=2)


@pytest.fixture(scope="module")
def on_emr(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """Two streaming jobs on EMR Serverless, event logs and a KMS key; the batch lane has Flex. cdk-nag checks it."""
    encryption = EncryptionSettings(kms_key=KEY)
    settings = Settings(stage="same", stream=STREAM, spark=SparkSettings(ui_logs=True), encryption=encryption)
    return Assembly(synth(settings, tmp_path_factory.mktemp("on_emr"), checked=True), settings)


def grants(assembly: Assembly) -> set[tuple[str, str]]:
    return {(role, action) for role, action, _ in assembly.grants() if not action.startswith("kms:")}


def launch_of(assembly: Assembly) -> EmrLaunch:
    """The parameters of the functions that start a streaming run."""
    functions = assembly.resources("AWS::Lambda::Function").values()
    texts = {body["Environment"]["Variables"].get(STREAM_LAUNCH) for body in functions if "Environment" in body}
    (text,) = texts - {None}
    return EmrLaunch.from_text(text)


def test_a_streaming_run_has_the_workers_of_the_settings(on_emr: Assembly) -> None:
    # When the service reads a function's request
    properties = spark_properties(launch_of(on_emr).request("1", "job", "token"))
    # Then all workers have sizes that exist, and the driver keeps two executors
    assert needed_capacity(properties) == Units(vcpu=38, gb=152)
    assert (properties["spark.driver.memory"], properties["spark.driver.memoryOverhead"]) == ("5g", "3g")
    scaling = {name.rpartition(".")[2]: value for name, value in properties.items() if ".dynamicAllocation." in name}
    assert scaling == {"enabled": "true", "minExecutors": "2", "maxExecutors": "9", "initialExecutors": "2"}


def test_a_streaming_run_may_read_its_code_and_write_its_logs(on_emr: Assembly) -> None:
    # Given the service's actions with the run's role before its code runs, and after its end
    launch = launch_of(on_emr)
    words = f"{launch.entry_point} {launch.arguments} {launch.spark_submit_parameters}"
    files = re.findall(r"s3://[^\s#]+", words)
    # Then the role allows them
    assert len(files) == 3
    assert all(on_emr.may_read("EmrStream", uri) for uri in files)
    assert on_emr.allowed("s3:PutObject", f"/{SPARK_LOGS}*") == {"EmrStream", "Jobs"}
    assert launch.log_uri.endswith(f"/{SPARK_LOGS}")
    # Amazon EMR Serverless User Guide, "Logging and monitoring", for CloudWatch
    for action in ("DescribeLogStreams", "CreateLogStream", "PutLogEvents"):
        assert on_emr.allowed(f"logs:{action}", launch.log_group) == {"EmrStream"}
    assert ("EmrStream", "logs:DescribeLogGroups", "*") in on_emr.grants()
    # And EMR Serverless keeps no event logs under its own key
    assert not launch.keeps_event_logs


def test_the_roles_of_the_stream_have_the_rights_of_glue_in_its_place(on_emr: Assembly, assembly: Assembly) -> None:
    # Given the differences from a stage on Glue, which also has a dataset with urgent tags and metadata
    on_glue = {item for item in grants(assembly) if item not in URGENT_ATTRIBUTES}
    added, removed = grants(on_emr) - on_glue, on_glue - grants(on_emr)
    starters = {f"Router{name.replace('_', '')}" for name in STARTERS}
    # Then the functions that start a run may do so there, list runs, and pass its role
    starts = {"emr-serverless:StartJobRun", "emr-serverless:ListJobRuns", "iam:PassRole"}
    expected = {(role, action) for role in starters for action in starts}
    # And one function may end them, and the roles that check whether a run has ended may read it
    expected.add(("Routerstreamcontrol", "emr-serverless:CancelJobRun"))
    watchers = ("Routerplan", "Routerrunstatus", "Routersweep", "Jobs", "EmrStream")
    expected |= {(role, "emr-serverless:GetJobRun") for role in watchers}
    assert {item for item in added if not item[0].startswith("EmrStream")} | {
        item for item in added if item[1] == "emr-serverless:GetJobRun"
    } == expected
    # And the role of the runs has the permissions of Glue's role, except for the services' logs
    of_glue = {action for role, action in on_glue if role == "Jobs" and not action.startswith("logs:")}
    of_emr = {action for role, action in grants(on_emr) if role == "EmrStream" and not action.startswith("logs:")}
    assert of_emr == of_glue | {"emr-serverless:GetJobRun"}
    # And the streaming jobs of Glue are gone, as is its role's permission on the index of open manifests
    assert removed == {
        *((role, action) for role in starters for action in ("glue:StartJobRun", "glue:GetJobRuns")),
        ("Routerstreamcontrol", "glue:BatchStopJobRun"),
        ("Jobs", "dynamodb:Query"),
    }
    # And no other role reads the inbox
    assert on_emr.allowed("s3:DeleteObject", "/inbox*") == {"EmrStream"}
