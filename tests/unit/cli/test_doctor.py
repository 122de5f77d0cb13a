"""``doctor``: each line is ok or states what to do; the exit code covers all lines."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError, ProfileNotFound

from cli.commands import DEFAULT_PLACE, Place
from cli.doctor import checks
from cli.doctor.checks import Account, Finding, Readiness, answer_of, examine, examine_machine
from cli.errors import ExitCode
from infra.names import CODE_MARK, code_version, version_of
from infra.synth import CHECKOUT
from lake.settings import EncryptionSettings, InputSettings, LedgerSettings, Settings
from tests.unit.cli.conftest import Answered, Printed

TOPIC = "arn:aws:sns:eu-central-1:111122223333:alarms"
SETTINGS = Settings(stage="dev")
CDK = "AWS_REGION=eu-west-1 cdk --profile ops"
BOOTSTRAP_KEY = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"


@dataclass
class FakeAws:
    """A session and its clients; attributes are the services' answers, or the errors that they raise."""

    region_name: str | None = "eu-central-1"
    caller: Any = field(default_factory=lambda: {"Account": "111122223333", "Arn": "arn:aws:iam::111122223333:user/a"})
    quota: Any = 1000.0
    """Value of every quota; None: the service lists none."""
    versions: str | None = "Enabled"
    """State of the versions of the input bucket."""
    stack: Any = None
    bootstrap: Any = "AWS_MANAGED_KEY"
    """The output of CDK's stack with the key of its bucket."""
    subscriptions: Any = (TOPIC + ":1",)
    settings: Settings = SETTINGS

    exceptions = SimpleNamespace(NoSuchResourceException=type("NoSuchResourceException", (ClientError,), {}))

    def client(self, _service: str, **_: Any) -> "FakeAws":
        return self

    def get_caller_identity(self) -> Any:
        return answer_or_raise(self.caller)

    def get_service_quota(self, **_: str) -> Any:
        if self.quota is None:
            raise self.exceptions.NoSuchResourceException({}, "GetServiceQuota")
        return {"Quota": {"Value": answer_or_raise(self.quota)}}

    get_aws_default_service_quota = get_service_quota

    def get_bucket_versioning(self, Bucket: str) -> Any:  # noqa: N803
        assert Bucket == "landing"
        return {"Status": self.versions} if self.versions else {}

    def describe_stacks(self, StackName: str) -> Any:  # noqa: N803
        if StackName == "CDKToolkit":
            output = {"OutputKey": "FileAssetKeyArn", "OutputValue": answer_or_raise(self.bootstrap)}
            return {"Stacks": [{"Outputs": [output]}]}
        assert StackName == "hybrid-router-dev"
        return {"Stacks": [answer_or_raise(self.stack or deployed())]}

    def get_paginator(self, _: str) -> "FakeAws":
        return self

    def paginate(self, **_: str) -> Any:
        found = [{"SubscriptionArn": arn, "Endpoint": "a@example.com"} for arn in answer_or_raise(self.subscriptions)]
        return [{"Subscriptions": found}]


def answer_or_raise(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "reported by AWS"}}, "DescribeStacks")


def deployed(code: str = "", status: str = "UPDATE_COMPLETE") -> dict[str, Any]:
    outputs = [{"OutputKey": "AlarmTopic", "OutputValue": TOPIC}]
    description = f"hybrid-router; {CODE_MARK}{code or code_version(CHECKOUT)}"
    return {"Description": description, "StackStatus": status, "Outputs": outputs}


def findings(aws: FakeAws | Exception) -> dict[str, Finding]:
    """The last finding of each name."""
    settings = aws.settings if isinstance(aws, FakeAws) else SETTINGS
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("boto3.Session", lambda profile_name, region_name: answer_or_raise(aws))
        return {
            item.name: item
            for item in Account(Place(profile="ops", region="eu-west-1"), Path("my.toml")).examine(settings)
        }


def test_an_account_with_everything_is_ok() -> None:
    found = findings(FakeAws())
    assert list(found) == ["credentials", "region", "quotas", "bootstrap", "stack", "subscription"]
    assert {item.state for item in found.values()} == {Readiness.OK}


def test_a_profile_that_does_not_exist_says_nothing_about_the_region() -> None:
    assert list(findings(ProfileNotFound(profile="ops"))) == ["credentials", "stack"]


EXPIRING = Settings(stage="dev", input=InputSettings(bucket="landing"), ledger=LedgerSettings(keep_days=60))
OWN_KEY = Settings(stage="dev", encryption=EncryptionSettings(bootstrap_key=BOOTSTRAP_KEY))


@pytest.mark.parametrize(
    ("aws", "name", "state", "text"),
    [
        (FakeAws(caller=NoCredentialsError()), "credentials", Readiness.UNREACHABLE, "aws sso login"),
        (FakeAws(caller=NoCredentialsError()), "stack", Readiness.SKIPPED, "needs credentials"),
        (FakeAws(region_name=None), "region", Readiness.UNREACHABLE, "pass --region"),
        (FakeAws(quota=499), "quotas", Readiness.TO_DO, "aws --profile ops --region eu-west-1 service-quotas request-"),
        (FakeAws(quota=499), "quotas", Readiness.TO_DO, "--quota-code L-08F3B322 --desired-value 500"),
        (FakeAws(quota=500), "quotas", Readiness.OK, "500, needed 500"),
        (FakeAws(quota=None), "quotas", Readiness.TO_DO, "unknown, look it up in the console, needed 500"),
        (FakeAws(bootstrap=BOOTSTRAP_KEY), "bootstrap", Readiness.TO_DO, f'bootstrap_key = "{BOOTSTRAP_KEY}"'),
        (FakeAws(bootstrap=refused("ValidationError")), "bootstrap", Readiness.SKIPPED, f"run '{CDK} bootstrap'"),
        (
            FakeAws(stack=refused("ValidationError")),
            "stack",
            Readiness.TO_DO,
            f"'{CDK} deploy -c stage=dev -c settings=my",
        ),
        (FakeAws(stack=deployed("0123456789ab")), "stack", Readiness.TO_DO, "deployed from the code 0123456789ab"),
        (FakeAws(stack={"StackStatus": "CREATE_COMPLETE"}), "stack", Readiness.TO_DO, "of an older version"),
        (FakeAws(stack=deployed(status="ROLLBACK_COMPLETE")), "stack", Readiness.TO_DO, "is ROLLBACK_COMPLETE"),
        (FakeAws(subscriptions=()), "subscription", Readiness.TO_DO, f"eu-west-1 sns subscribe --topic-arn {TOPIC}"),
        (FakeAws(subscriptions=("PendingConfirmation",)), "subscription", Readiness.TO_DO, "follow the link"),
        (FakeAws(subscriptions=("Deleted",)), "subscription", Readiness.TO_DO, "has no subscriber"),
        (FakeAws(subscriptions=refused("AccessDenied")), "subscription", Readiness.UNREACHABLE, "a permission is"),
        (FakeAws(settings=EXPIRING), "versions", Readiness.OK, ""),
        (FakeAws(settings=EXPIRING, versions=None), "versions", Readiness.TO_DO, ""),
        (FakeAws(settings=OWN_KEY, bootstrap=BOOTSTRAP_KEY), "bootstrap", Readiness.OK, ""),
    ],
)
def test_what_is_not_ready_states_what_to_do(aws: FakeAws, name: str, state: Readiness, text: str) -> None:
    found = findings(aws)[name]
    assert (found.state, text in found.text) == (state, True), found


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ([Readiness.OK, Readiness.SKIPPED], ExitCode.OK),
        ([Readiness.TO_DO, Readiness.OK], ExitCode.NEGATIVE),
        ([Readiness.UNREACHABLE, Readiness.TO_DO], ExitCode.NOT_REACHABLE),
    ],
)
def test_the_exit_code_covers_all_lines(
    states: list[Readiness], code: ExitCode, answered: Answered, printed: Printed
) -> None:
    lines = [Finding("java", state, "text\x1b[2J") for state in states]
    text = printed(answer_of, lines, code=code)
    assert text.splitlines()[0] == f"java          {states[0]:<14} text\\x1b[2J"
    assert [item["state"] for item in answered(answer_of, lines, code=code)["findings"]] == states


def answers(monkeypatch: pytest.MonkeyPatch, outputs: dict[str, str]) -> None:
    monkeypatch.setattr(checks, "_answer", lambda command: outputs.get(" ".join(command)))
    monkeypatch.setattr("local.class_archive.java_command", lambda: "java")


def test_the_programs_that_a_machine_lacks_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, {"java -version": 'openjdk version "11.0.2"', "node --version": "v20.1.0"})
    (tmp_path / "uv.lock").touch()
    found = {item.name: item for item in examine_machine(tmp_path, SETTINGS)}
    assert found.pop("python").text == ".".join(map(str, sys.version_info[:3]))
    assert {item.state for item in found.values()} == {Readiness.TO_DO}
    assert "java is not Java 17" in found["java"].text
    assert found["node"].text.startswith("20 is too old")
    assert found["uv"].text.startswith("missing: run 'make setup'")
    assert "run `make wheels`" in found["wheels"].text


def test_a_machine_with_all_programs_is_ok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = {"java -version": 'openjdk version "21.0.1"', "java --list-modules": "jdk.incubator.vector@21"}
    answers(monkeypatch, {**java, "node --version": "v22.1.0"})
    found = {item.name: item.state for item in examine_machine(tmp_path, SETTINGS)}
    assert found == {
        **dict.fromkeys(("python", "java", "node"), Readiness.OK),
        "uv": Readiness.SKIPPED,
        "wheels": Readiness.SKIPPED,
    }


def test_a_settings_file_of_another_stage_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, {})
    session: Any = FakeAws(caller=NoCredentialsError())
    monkeypatch.setattr("boto3.Session", lambda **_: session)
    for text, advice in (('stage = "prod"', "pass --stage prod"), ("", "run 'hybrid-router settings check")):
        file = tmp_path / "a.toml"
        file.write_text(text)
        found = {item.name: item for item in examine(file, DEFAULT_PLACE)}
        assert (found["settings"].state, advice in found["settings"].text) == (Readiness.TO_DO, True)
    missing = next(item for item in examine(tmp_path / "b.toml", DEFAULT_PLACE) if item.name == "settings")
    assert "the file does not exist: pass your stage's file by --settings" in missing.text


def test_the_version_of_the_code_follows_the_deployed_files(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "a.py").write_text("1")
    first = code_version(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.py").write_text("1")
    assert code_version(tmp_path) == first == version_of(f"any text; {CODE_MARK}{first}")
    (tmp_path / "lake" / "a.py").write_text("2")
    assert code_version(tmp_path) != first
    assert version_of("of an older deployment") is None
