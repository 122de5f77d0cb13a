"""The permissions of each function and of the jobs: the actions their code calls, on the resources it calls them on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.allow import allow
from lake import layout
from lake.ledger.table import OPEN_INDEX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_cdk import aws_iam as iam

    from infra.catalog import Catalog
    from infra.functions import RouterFunction
    from infra.jobs import Jobs
    from infra.storage import Storage

ANY_KEY = "The keys are made at run time; every key under this prefix belongs to the system."
ANY_INPUT = "Every key of the input bucket can be an arrival."
ANY_TABLE = "A table is named after its dataset, which is unknown until its first file arrives."


@dataclass(frozen=True, slots=True)
class Grants:
    """Gives roles access to the stack's storage, jobs and catalog; each method is one kind of access."""

    storage: Storage
    jobs: Jobs
    catalog: Catalog

    def use_ledger(self, role: iam.Role) -> None:
        """Conditional writes (also in transactions) and consistent reads; no Scan, no delete."""
        table = self.storage.ledger.table_arn
        writes = ("dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:ConditionCheckItem")
        allow(role, ("dynamodb:GetItem", "dynamodb:Query", *writes), [table])
        allow(role, ("dynamodb:Query",), [f"{table}/index/{OPEN_INDEX}"])

    def read_control(self, role: iam.Role, *prefixes: str) -> None:
        """Read documents under the prefixes.

        ListBucket lets S3 answer "no such key" for a missing document instead of "access denied".
        """
        self._allow_in_control(role, ("s3:GetObject",), *prefixes)
        allow(role, ("s3:ListBucket",), [self.storage.control.bucket_arn])

    def write_control(self, role: iam.Role, *prefixes: str) -> None:
        """Write documents under the prefixes."""
        self._allow_in_control(role, ("s3:PutObject",), *prefixes)

    def own_arrivals(self, role: iam.Role) -> None:
        """Take ownership: write manifests, and write and delete intents.

        The commit document of an earlier manifest says whether it has read a file that was put again, and a list of
        files that it leaves to others is added.
        """
        self.write_control(role, layout.MANIFESTS, layout.INTENTS, layout.EXCLUSIONS)
        self._allow_in_control(role, ("s3:DeleteObject",), layout.INTENTS)
        self.read_control(role, layout.MANIFESTS, layout.COMMITS, layout.EXCLUSIONS)

    def use_stream_files(self, role: iam.Role) -> None:
        """Inbox and checkpoint, which Spark itself creates, reads, renames and removes.

        The prefixes have no slash at their end: Hadoop's file systems put marker objects next to a folder, and a broken
        checkpoint is moved to a key next to it.
        """
        actions = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
        self._allow_in_control(role, actions, layout.INBOX.rstrip("/"), layout.CHECKPOINT.partition("/")[0])

    def publish(self, role: iam.Role) -> None:
        """Upload, complete, abort and delete objects of the lake and the quarantine."""
        buckets = (self.storage.lake, self.storage.quarantine)
        actions = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
        allow(role, actions, [bucket.arn_for_objects("*") for bucket in buckets], ANY_KEY)
        allow(role, ("s3:ListBucket", "s3:ListBucketMultipartUploads"), [bucket.bucket_arn for bucket in buckets])

    def list_published(self, role: iam.Role) -> None:
        """List lake and quarantine; no access to the objects."""
        allow(role, ("s3:ListBucket",), [self.storage.lake.bucket_arn, self.storage.quarantine.bucket_arn])

    def read_input(self, role: iam.Role) -> None:
        """Read objects by key and version.

        ListBucket lets S3 answer "no such key" for a missing object instead of "access denied".
        """
        arn = self.storage.input.bucket_arn
        allow(role, ("s3:GetObject", "s3:GetObjectVersion"), [f"{arn}/*"], ANY_INPUT)
        allow(role, ("s3:ListBucket",), [arn])

    def list_input(self, role: iam.Role) -> None:
        """List the input bucket with its versions; no access to the objects."""
        allow(role, ("s3:ListBucketVersions",), [self.storage.input.bucket_arn])

    def look_up_events(self, role: iam.Role) -> None:
        """Complete an event that lacks size, ETag or version: the bucket's versioning, and the versions of a key."""
        self.list_input(role)
        allow(role, ("s3:GetBucketVersioning",), [self.storage.input.bucket_arn])

    def find_dataset(self, role: iam.Role) -> None:
        """Find out whether the input bucket has objects of a dataset that a request names and the ledger lacks."""
        allow(role, ("s3:ListBucket",), [self.storage.input.bucket_arn])

    def start_stream(self, role: iam.Role) -> None:
        """Start a run of the streaming job."""
        allow(role, ("glue:StartJobRun",), [self.jobs.stream_arn])

    def watch_runs(self, role: iam.Role) -> None:
        """Read the state of runs of both jobs."""
        allow(role, ("glue:GetJobRun", "glue:GetJobRuns"), [self.jobs.stream_arn, self.jobs.batch_arn])

    def stop_stream(self, role: iam.Role) -> None:
        """Stop runs of the streaming job."""
        allow(role, ("glue:BatchStopJobRun",), [self.jobs.stream_arn])

    def maintain_tables(self, role: iam.Role) -> None:
        """Create and extend tables of the stack's database; no permission to drop one."""
        actions = ("glue:GetTable", "glue:CreateTable", "glue:UpdateTable")
        allow(role, actions, self.catalog.table_arns, ANY_TABLE)

    def _allow_in_control(self, role: iam.Role, actions: tuple[str, ...], *prefixes: str) -> None:
        control = self.storage.control
        allow(role, actions, [control.arn_for_objects(f"{prefix}*") for prefix in prefixes], ANY_KEY)


def grant_functions(grants: Grants, functions: Mapping[str, RouterFunction]) -> None:
    """Give every function access to the ledger and to everything else that its code uses.

    Raises
    ------
    KeyError
        A function has no entry in ``GRANTS_BY_FUNCTION``.
    """
    for name, function in functions.items():
        grants.use_ledger(function.role)
        GRANTS_BY_FUNCTION[name](grants, function.role)


def grant_jobs(grants: Grants) -> None:
    """Give the jobs' common role access to ledger, input, lake, quarantine, control documents and the state of runs."""
    role = grants.jobs.role
    grants.use_ledger(role)
    grants.read_input(role)
    grants.publish(role)
    grants.read_control(role, layout.MANIFESTS, layout.PLANS, layout.COMMITS, layout.EXCLUSIONS)
    grants.write_control(role, layout.MANIFESTS, layout.COMMITS, layout.EXCLUSIONS, layout.RESULTS)
    grants.use_stream_files(role)
    grants.watch_runs(role)


def grant_verification(grants: Grants) -> None:
    """Let the jobs' role verify: list the versions of the input, and write what was found."""
    grants.list_input(grants.jobs.role)
    grants.write_control(grants.jobs.role, layout.VERIFICATIONS)


def _route(grants: Grants, role: iam.Role) -> None:
    grants.own_arrivals(role)
    grants.look_up_events(role)
    grants.write_control(role, layout.INBOX)
    grants.start_stream(role)


def _plan(grants: Grants, role: iam.Role) -> None:
    grants.find_dataset(role)
    grants.read_control(role, layout.MANIFESTS)
    grants.write_control(role, layout.MANIFESTS, layout.PLANS)
    grants.watch_runs(role)


def _backfill(grants: Grants, role: iam.Role) -> None:
    grants.find_dataset(role)
    grants.list_input(role)
    grants.own_arrivals(role)


def _run_status(grants: Grants, role: iam.Role) -> None:
    grants.read_control(role, layout.PLANS)
    grants.watch_runs(role)


def _settle(grants: Grants, role: iam.Role) -> None:
    grants.read_control(role, layout.PLANS, layout.COMMITS)
    grants.write_control(role, layout.PLANS)
    grants.list_published(role)


def _sweep(grants: Grants, role: iam.Role) -> None:
    grants.own_arrivals(role)
    grants.read_control(role, layout.INTENTS, layout.SWEEP)
    grants.write_control(role, layout.INBOX, layout.RESULTS, layout.SWEEP)
    grants.publish(role)
    grants.list_input(role)
    grants.start_stream(role)
    grants.watch_runs(role)


def _catalog(grants: Grants, role: iam.Role) -> None:
    grants.maintain_tables(role)


def _stream_control(grants: Grants, role: iam.Role) -> None:
    grants.start_stream(role)
    grants.watch_runs(role)
    grants.stop_stream(role)


def _promote(grants: Grants, role: iam.Role) -> None:
    grants.find_dataset(role)
    grants.read_control(role, layout.MANIFESTS)
    grants.write_control(role, layout.MANIFESTS, layout.INBOX)
    grants.start_stream(role)


def _reprocess(grants: Grants, role: iam.Role) -> None:
    grants.find_dataset(role)
    grants.read_control(role, layout.MANIFESTS)


GRANTS_BY_FUNCTION = {
    "route": _route,
    "plan": _plan,
    "backfill": _backfill,
    "run_status": _run_status,
    "settle": _settle,
    "sweep": _sweep,
    "catalog": _catalog,
    "stream_control": _stream_control,
    "promote": _promote,
    "reprocess": _reprocess,
}
