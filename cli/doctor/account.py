"""The account, its quotas and the stack, as the credentials of the caller see them. Every request has a timeout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cli.aws_errors import advise
from cli.doctor.finding import Finding, Readiness
from infra.code_version import code_version, version_of
from infra.names import stack_name
from infra.outputs import output_key
from infra.quotas import needed_quotas
from lake.errors import InvalidSettingsError
from lake.settings import Settings
from router.plan.glue_room import read_quota

if TYPE_CHECKING:
    import boto3


CLIENT_CONFIG = Config(connect_timeout=3, read_timeout=5, retries={"total_max_attempts": 2})
"""Seconds; a request takes about 16 of them at most."""
PENDING = "PendingConfirmation"
"""In the place of the ARN of a subscription that its owner has not confirmed (Amazon SNS, ListSubscriptionsByTopic)."""
SUBSCRIPTION = "subscription"
"""The line that shows whether alarms reach people."""
BOOTSTRAP_STACK = "CDKToolkit"
"""The default name (AWS CDK, "Bootstrapping"); its output FileAssetKeyArn is the key of the bucket for files."""
AWS_MANAGED_KEY = "AWS_MANAGED_KEY"
MISSING_STACK = "ValidationError"
"""What DescribeStacks answers for a name that does not exist."""


class Account:
    """The checks of one account and region, for one stage."""

    def __init__(self, open_session: Callable[[], boto3.Session], stage: str, checkout: Path) -> None:
        self._open_session = open_session
        self._stage = stage
        self._checkout = checkout
        self._session: Any = None

    def examine(self, settings: Settings | None) -> Iterator[Finding]:
        """Credentials, region, quotas, stack and the way of alarms; nothing else is asked without the first two."""
        opening = [*self._guarded("credentials", self._credentials), *self._guarded("region", self._region)]
        yield from opening
        versions = ["versions"] if _needs_versions(settings) else []
        names = ("quotas", "bootstrap", *versions, "stack", SUBSCRIPTION)
        if any(finding.state is not Readiness.OK for finding in opening):
            yield from (Finding(name, Readiness.SKIPPED, "needs credentials and a region") for name in names)
            return
        if settings is None:
            yield from (Finding(name, Readiness.SKIPPED, "needs a valid settings file") for name in names[:2])
        else:
            yield from self._guarded("quotas", lambda: self._quotas(settings))
            yield from self._guarded("bootstrap", lambda: self._bootstrap(settings))
            if _needs_versions(settings):
                yield from self._guarded("versions", lambda: self._versions(settings))
        yield from self._guarded("stack", self._stack)

    def _client(self, service: str) -> Any:  # noqa: ANN401
        return self._session.client(service, config=CLIENT_CONFIG)

    def _guarded(self, name: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
        """The findings of ``look``, and an error of AWS as the last one."""
        try:
            yield from look()
        except (BotoCoreError, ClientError) as error:
            yield Finding(name, Readiness.UNREACHABLE, advise(error))

    def _credentials(self) -> Iterator[Finding]:
        self._session = self._open_session()
        # The partition's first region answers where none is set: whether one is set is another line.
        sts = self._session.client("sts", region_name=self._session.region_name or "us-east-1", config=CLIENT_CONFIG)
        caller = sts.get_caller_identity()
        yield Finding("credentials", Readiness.OK, f"account {caller['Account']}, {caller['Arn']}")

    def _region(self) -> Iterator[Finding]:
        region = self._session.region_name if self._session is not None else None
        if region:
            yield Finding("region", Readiness.OK, region)
        else:
            yield Finding("region", Readiness.UNREACHABLE, "no AWS region is set: pass --region, or set AWS_REGION")

    def _quotas(self, settings: Settings) -> Iterator[Finding]:
        client = self._client("service-quotas")
        for quota in needed_quotas(settings):
            value = read_quota(client, quota.service, quota.code)
            what = f"{quota.name} ({quota.service} {quota.code})"
            if value is not None and value >= quota.needed:
                yield Finding("quotas", Readiness.OK, f"{what}: {value:g}, needed {quota.needed}")
            else:
                found = "unknown" if value is None else f"{value:g}"
                advice = "run 'hybrid-router quotas', which prints how to raise it"
                yield Finding("quotas", Readiness.TO_DO, f"{what}: {found}, needed {quota.needed}: {advice}")

    def _versions(self, settings: Settings) -> Iterator[Finding]:
        bucket = settings.input.bucket
        status = self._client("s3").get_bucket_versioning(Bucket=bucket).get("Status")
        try:
            settings.ledger.check_versions(bucket, status)
        except InvalidSettingsError as error:
            yield Finding("versions", Readiness.TO_DO, str(error))
        else:
            yield Finding("versions", Readiness.OK, f"{bucket} keeps versions, as ledger.keep_days needs")

    def _bootstrap(self, settings: Settings) -> Iterator[Finding]:
        """Whether the jobs may read the files that a deployment uploads, which a key of the account may encrypt."""
        stack = self._described(BOOTSTRAP_STACK)
        if stack is None:
            missing = f"there is no {BOOTSTRAP_STACK} here: run 'cdk bootstrap', unless you have another one"
            yield Finding("bootstrap", Readiness.SKIPPED, missing)
            return
        outputs = {item["OutputKey"]: item["OutputValue"] for item in stack.get("Outputs", [])}
        key = outputs.get("FileAssetKeyArn", "")
        if key in ("", AWS_MANAGED_KEY, settings.encryption.bootstrap_key):
            yield Finding("bootstrap", Readiness.OK, BOOTSTRAP_STACK)
        else:
            advice = f'set encryption.bootstrap_key to its ARN and deploy: [encryption] bootstrap_key = "{key}"'
            text = f"a key of yours encrypts the deployment's files, and the jobs may not use it: {advice}"
            yield Finding("bootstrap", Readiness.TO_DO, text)

    def _described(self, name: str) -> dict[str, Any] | None:
        """CloudFormation's description of a stack; None: there is none of this name."""
        try:
            found: dict[str, Any] = self._client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") != MISSING_STACK:
                raise
            return None
        return found

    def _stack(self) -> Iterator[Finding]:
        name = stack_name(self._stage)
        stack = self._described(name)
        if stack is None:
            yield Finding("stack", Readiness.TO_DO, f"there is no {name} here: run 'cdk deploy -c stage={self._stage}'")
            yield Finding(SUBSCRIPTION, Readiness.SKIPPED, "needs the stack")
            return
        yield self._code_of(stack, name)
        outputs = {item["OutputKey"]: item["OutputValue"] for item in stack.get("Outputs", [])}
        topic = outputs.get(output_key("alarm_topic"))
        if topic is None:
            yield Finding(SUBSCRIPTION, Readiness.SKIPPED, f"{name} has no output {output_key('alarm_topic')}")
            return
        yield from self._guarded(SUBSCRIPTION, lambda: self._subscription(topic))

    def _code_of(self, stack: dict[str, Any], name: str) -> Finding:
        deployed, here = version_of(stack.get("Description", "")), code_version(self._checkout)
        status = stack["StackStatus"]
        if not status.endswith("_COMPLETE") or status.startswith(("ROLLBACK_", "DELETE_")):
            return Finding("stack", Readiness.TO_DO, f"{name} is {status}: look at its events in CloudFormation")
        if deployed != here:
            difference = f"was deployed from the code {deployed or 'of an older version'}, here is {here}"
            advice = f"take that version of hybrid-router, or run 'cdk deploy -c stage={self._stage}'"
            return Finding("stack", Readiness.TO_DO, f"{name} {difference}: {advice}")
        return Finding("stack", Readiness.OK, f"{name}, {status}, of the code that is here ({here})")

    def _subscription(self, topic: str) -> Iterator[Finding]:
        """Whether a person's subscription is confirmed: without it no alarm reaches anyone."""
        pages = self._client("sns").get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
        found = [item["SubscriptionArn"] for page in pages for item in page["Subscriptions"]]
        confirmed = [arn for arn in found if arn != PENDING]
        if confirmed:
            yield Finding("subscription", Readiness.OK, f"{len(confirmed)} confirmed of {len(found)}, topic {topic}")
        elif found:
            yield Finding(
                "subscription", Readiness.TO_DO, f"not confirmed: follow the link in the mail of the topic {topic}"
            )
        else:
            command = f"aws sns subscribe --topic-arn {topic} --protocol email --notification-endpoint <address>"
            advice = f"set alarms.email and deploy, or run '{command}'"
            yield Finding("subscription", Readiness.TO_DO, f"the topic of the alarms has no subscriber: {advice}")


def _needs_versions(settings: Settings | None) -> bool:
    """Whether arrival rows expire and the input bucket is not the stack's own, which keeps versions."""
    return settings is not None and settings.ledger.keep_days > 0 and bool(settings.input.bucket)
