"""The permissions of functions, jobs and the table optimizer: the kinds of access that each needs, and the actions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.allow import allow, key_pattern
from infra.encryption import allow_key_as_used
from infra.engines import Engines
from infra.functions import RouterFunction
from infra.storage import Catalog, Storage
from lake import layout
from lake.cut import cut
from lake.ledger.table import OPEN_INDEX
from lake.ledger.tables import OUTBOX
from lake.resource_names import OPTIMIZER_ROLE
from lake.settings import DatasetRule, Settings
from lake.settings.routing import ARN_CHARACTERS

ANY_KEY = "The keys are made at run time; every key under this prefix belongs to the system."
ANY_INPUT = "Every key of the input bucket can be an arrival."
ANY_QUOTA = "Reading a quota cannot be limited to one (Service Authorization Reference, Service Quotas)."
MAX_CHARACTERS = 5700
"""Maximum length of the resources of a policy: IAM refuses a managed policy of more than 6,144 characters."""
ANY_TABLE = "A table is named after its dataset, which is unknown until its first file arrives."

LOG_GROUP = "/aws-glue/iceberg-compaction/logs"
"""Glue's log group, for all tables of the account."""
ANY_STREAM = "The streams of the log group are named by Glue."
PASSED = {"StringEquals": {"iam:PassedToService": "glue.amazonaws.com"}}


@dataclass(frozen=True, slots=True)
class Grants:
    """Gives roles access to the stack's storage, jobs and catalog; each method is one kind of access."""

    storage: Storage
    catalog: Catalog
    engines: Engines

    def use_ledger(self, role: iam.Role, *actions: str) -> None:
        """Read or change rows of the ledger; no Scan, and no delete."""
        allow(role, [f"dynamodb:{action}" for action in actions], [self.storage.ledger.table_arn])

    def list_open_manifests(self, role: iam.Role) -> None:
        allow(role, ("dynamodb:Query",), [f"{self.storage.ledger.table_arn}/index/{OPEN_INDEX}"])

    def read_control(self, role: iam.Role, *prefixes: str) -> None:
        """Read documents under the prefixes.

        ListBucket lets S3 answer "no such key" for a missing document instead of "access denied".
        """
        self.allow_in_control(role, ("s3:GetObject",), *prefixes)
        allow(role, ("s3:ListBucket",), [self.storage.control.bucket_arn])

    def write_control(self, role: iam.Role, *prefixes: str) -> None:
        self.allow_in_control(role, ("s3:PutObject",), *prefixes)

    def own_arrivals(self, role: iam.Role) -> None:
        """Take ownership: write manifests, parts and pointers, and write and delete intents."""
        self.own_resubmission(role)
        self.write_control(role, layout.MANIFESTS)
        self.write_pointers(role)

    def own_resubmission(self, role: iam.Role) -> None:
        """Take ownership of a file that is always in the batch lane: write parts, and write and delete intents."""
        self.write_control(role, layout.PARTS, layout.INTENTS)
        self.allow_in_control(role, ("s3:DeleteObject",), layout.INTENTS)

    def divide_collections(self, role: iam.Role) -> None:
        """Read parts, and write the manifests of a division and its document; rows are granted separately."""
        self.read_control(role, layout.PARTS, layout.DIVISIONS)
        self.write_control(role, layout.MANIFESTS, layout.DIVISIONS)

    def write_pointers(self, role: iam.Role) -> None:
        self.write_control(role, *(layout.inbox(shard) for shard in self.engines.jobs.shards))

    def publish(self, role: iam.Role) -> None:
        """Upload, complete, abort and delete objects of the lake and the quarantine."""
        buckets = (self.storage.lake, self.storage.quarantine)
        actions = (
            "s3:GetObject",
            "s3:PutObject",
            "s3:DeleteObject",
            "s3:AbortMultipartUpload",
            "s3:ListMultipartUploadParts",
        )
        allow(role, actions, [bucket.arn_for_objects("*") for bucket in buckets], ANY_KEY)
        allow(role, ("s3:ListBucket", "s3:ListBucketMultipartUploads"), [bucket.bucket_arn for bucket in buckets])

    def list_published(self, role: iam.Role) -> None:
        """List lake and quarantine; no access to the objects."""
        allow(role, ("s3:ListBucket",), [self.storage.lake.bucket_arn, self.storage.quarantine.bucket_arn])

    def read_input(self, role: iam.Role) -> None:
        """Read objects by key and version.

        The rights to list let S3 answer "no such key" or "no such version" instead of "access denied" for a missing
        object: a deleted file is a result, a denied file waits.
        """
        arn = self.storage.input.bucket_arn
        allow(role, ("s3:GetObject", "s3:GetObjectVersion"), [f"{arn}/*"], ANY_INPUT)
        allow(role, ("s3:ListBucket", "s3:ListBucketVersions"), [arn])

    def look_up_events(self, role: iam.Role) -> None:
        """Ask whether the input bucket keeps versions, and list them to complete an event without a version."""
        allow(role, ("s3:ListBucketVersions", "s3:GetBucketVersioning"), [self.storage.input.bucket_arn])

    def find_dataset(self, role: iam.Role) -> None:
        """List the input bucket with its versions, also to find a dataset that a request names and the ledger lacks.

        All current objects of its folder may be deleted.
        """
        allow(role, ("s3:ListBucket", "s3:ListBucketVersions"), [self.storage.input.bucket_arn])

    def start_stream(self, role: iam.Role) -> None:
        self.engines.stream.allow_stream_start(role)

    def watch_runs(self, role: iam.Role) -> None:
        for engine in self.engines.all:
            engine.allow_watch(role)

    def read_glue_room(self, role: iam.Role) -> None:
        """Read the account's quotas of Glue, and list the runs of the batch job."""
        allow(role, ("glue:GetJobRuns",), [self.engines.jobs.batch_arn])
        allow(role, ("servicequotas:GetServiceQuota", "servicequotas:GetAWSDefaultServiceQuota"), ["*"], ANY_QUOTA)

    def end_stream(self, role: iam.Role) -> None:
        self.engines.stream.allow_stream_end(role)

    def announce_hours(self, role: iam.Role) -> None:
        """Send events to the account's default bus."""
        bus = Stack.of(role).format_arn(service="events", resource="event-bus", resource_name="default")
        allow(role, ("events:PutEvents",), [bus])

    def maintain_tables(self, role: iam.Role) -> None:
        """Create and extend tables of the stack's database; no permission to drop one."""
        actions = ("glue:GetTable", "glue:CreateTable", "glue:UpdateTable")
        allow(role, actions, self.catalog.table_arns, ANY_TABLE)

    def maintain_iceberg_tables(self, role: iam.Role) -> None:
        """Create Iceberg tables and point them to other metadata, which is in the lake; list the lake's objects.

        No permission to drop a table or to delete an object.
        """
        actions = ("glue:GetTable", "glue:CreateTable", "glue:UpdateTable", "glue:DeleteTableOptimizer")
        allow(role, actions, self.catalog.iceberg_arns, ANY_TABLE)
        lake = self.storage.lake
        allow(role, ("s3:PutObject", "s3:GetObject"), [lake.arn_for_objects(f"{layout.TABLES}*")], ANY_KEY)
        allow(role, ("s3:ListBucket",), [lake.bucket_arn])

    def find_iceberg_tables(self, role: iam.Role) -> None:
        """Learn whether an Iceberg table exists, and where its metadata is."""
        allow(role, ("glue:GetTable",), self.catalog.iceberg_arns, ANY_TABLE)

    def delete_outbox(self, role: iam.Role) -> None:
        """Delete entries of the outboxes of tables; no other row."""
        prefix = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [f"{OUTBOX}#*"]}}
        allow(role, ("dynamodb:DeleteItem",), [self.storage.ledger.table_arn], conditions=prefix)

    def allow_in_input(self, role: iam.Role, actions: tuple[str, ...], prefixes: Sequence[str]) -> None:
        patterns = dict.fromkeys(map(key_pattern, prefixes))
        # CDK would divide them by an assumed length, and a prefix can be much longer.
        policies = cut(patterns, lambda pattern: (len(pattern) + ARN_CHARACTERS, 0), (MAX_CHARACTERS, 0))
        for number, patterns_of_policy in enumerate(policies):
            objects = [self.storage.input.arn_for_objects(pattern) for pattern in patterns_of_policy]
            allow(role, actions, objects, ANY_INPUT, apart=f"{actions[0].partition(':')[2]}{number}")
        # S3 answers "no such key" for a missing object instead of "access denied".
        allow(role, ("s3:ListBucket",), [self.storage.input.bucket_arn])

    def allow_in_control(self, role: iam.Role, actions: tuple[str, ...], *prefixes: str) -> None:
        control = self.storage.control
        allow(role, actions, [control.arn_for_objects(f"{prefix}*") for prefix in prefixes], ANY_KEY)


@dataclass(frozen=True, slots=True)
class FunctionGrants:
    """What the code of a function uses."""

    ledger: tuple[str, ...]
    kinds: tuple[Callable[[Grants, iam.Role], None], ...] = ()
    reads: tuple[str, ...] = ()
    """Prefixes of the control bucket whose documents it reads."""
    writes: tuple[str, ...] = ()
    """Prefixes of the control bucket whose documents it writes."""


READ = ("GetItem", "BatchGetItem", "Query")
CHANGE = ("UpdateItem",)
CREATE = ("PutItem", "UpdateItem")
GRANTS_BY_FUNCTION = {
    "route": FunctionGrants((*READ, *CREATE), (Grants.own_arrivals, Grants.look_up_events, Grants.start_stream)),
    "plan": FunctionGrants(
        (*READ, *CREATE),
        (
            Grants.list_open_manifests,
            Grants.find_dataset,
            Grants.divide_collections,
            Grants.watch_runs,
            Grants.read_glue_room,
        ),
        reads=(layout.PLANS,),
        writes=(layout.PLANS,),
    ),
    "backfill": FunctionGrants((*READ, *CREATE), (Grants.find_dataset, Grants.own_arrivals)),
    "run_status": FunctionGrants(
        ("GetItem", "BatchGetItem", *CHANGE), (Grants.watch_runs,), reads=(layout.PLANS, layout.DENIALS)
    ),
    "settle": FunctionGrants(
        (*READ, *CHANGE),
        (Grants.list_published,),
        reads=(layout.PLANS, layout.COMMITS, layout.RESULTS),
        writes=(layout.PLANS,),
    ),
    "sweep": FunctionGrants(
        (*READ, *CREATE),
        (
            Grants.list_open_manifests,
            Grants.own_arrivals,
            Grants.divide_collections,
            Grants.publish,
            Grants.find_iceberg_tables,
            Grants.announce_hours,
            Grants.look_up_events,
            Grants.start_stream,
            Grants.watch_runs,
        ),
        reads=(layout.MANIFESTS, layout.COMMITS, layout.INTENTS, layout.PLANS, layout.SWEEP),
        writes=(layout.RESULTS, layout.SWEEP),
    ),
    "catalog": FunctionGrants(("BatchGetItem", "Query"), (Grants.maintain_tables,)),
    "tables": FunctionGrants(
        (*READ, *CREATE),
        (Grants.list_open_manifests, Grants.delete_outbox, Grants.maintain_iceberg_tables),
        reads=(layout.COMMITS, layout.BATCHES),
        writes=(layout.BATCHES,),
    ),
    "stream_control": FunctionGrants(
        ("GetItem", "BatchGetItem", *CHANGE), (Grants.list_open_manifests, Grants.start_stream, Grants.end_stream)
    ),
    "promote": FunctionGrants(
        (*READ, *CREATE),
        (
            Grants.list_open_manifests,
            Grants.find_dataset,
            Grants.divide_collections,
            Grants.write_pointers,
            Grants.start_stream,
        ),
        reads=(layout.MANIFESTS,),
    ),
    "reprocess": FunctionGrants(
        (*READ, *CHANGE),
        (Grants.find_dataset,),
        reads=(layout.MANIFESTS, layout.DIVISIONS),
    ),
    "resubmit": FunctionGrants((*READ, *CREATE), (Grants.own_resubmission,), reads=(layout.RESUBMISSIONS,)),
}


def grant_functions(grants: Grants, functions: Mapping[str, RouterFunction]) -> None:
    """Give every function access to what its code uses; raises ``KeyError`` if a function has no entry in the table."""
    for name, function in functions.items():
        granted = GRANTS_BY_FUNCTION[name]
        grants.use_ledger(function.role, *granted.ledger)
        for kind in granted.kinds:
            kind(grants, function.role)
        if granted.reads:
            grants.read_control(function.role, *granted.reads)
        if granted.writes:
            grants.write_control(function.role, *granted.writes)


def grant_jobs(grants: Grants) -> None:
    """Give the roles of the job runs what a conversion needs, and the stream lane's role what only it needs."""
    for role in grants.engines.roles:
        grants.use_ledger(role, "GetItem", *CREATE)
        grants.read_input(role)
        grants.publish(role)
        documents = (layout.MANIFESTS, layout.COMMITS, layout.EXCLUSIONS, layout.DENIALS)
        grants.read_control(role, *documents, layout.PLANS, layout.RESUBMISSIONS)
        grants.write_control(role, *documents, layout.RESULTS)
        grants.watch_runs(role)
    # Glue's jobs share one role, which includes the rights of the stream lane.
    grants.list_open_manifests(grants.engines.stream.role)
    # Without its slash, the prefix matches the inboxes of all shards, including removed ones.
    grants.allow_in_control(grants.engines.stream.role, ("s3:DeleteObject",), layout.INBOX.rstrip("/"))


def grant_verification(grants: Grants) -> None:
    """Let the jobs' role verify: list the datasets and the versions of the input, follow files from their part to their
    manifest, and write the findings."""
    role = grants.engines.jobs.role
    grants.use_ledger(role, *READ)
    grants.read_control(role, layout.DIVISIONS, layout.RESULTS)
    grants.write_control(role, layout.VERIFICATIONS)


def grant_urgency(grants: Grants, route: iam.Role, rules: Sequence[DatasetRule]) -> None:
    """Let ``route`` read tags and metadata, only of files for which a rule needs them."""
    if tags := [rule.prefix for rule in rules if rule.urgent.tags]:
        grants.allow_in_input(route, ("s3:GetObjectTagging", "s3:GetObjectVersionTagging"), tags)
    if metadata := [rule.prefix for rule in rules if rule.urgent.metadata]:
        # S3 has no narrower right for HeadObject than the one to read the objects.
        grants.allow_in_input(route, ("s3:GetObject", "s3:GetObjectVersion"), metadata)


def add_optimizer(
    scope: Construct, settings: Settings, catalog: Catalog, storage: Storage, function: RouterFunction
) -> None:
    """Add the role of the table optimizer, and let the function pass it.

    The role reads the lake, and writes and deletes only in the tables' own folders. AWS Glue User Guide, "Table
    optimization prerequisites", lets it delete everywhere.
    """
    lake = storage.lake
    role = iam.Role(Construct(scope, "TableOptimizer"), "Role", assumed_by=iam.ServicePrincipal("glue.amazonaws.com"))
    allow(role, ("s3:GetObject",), [lake.arn_for_objects("*")], ANY_KEY)
    allow(role, ("s3:PutObject",), [lake.arn_for_objects(f"{layout.TABLES}*")], ANY_KEY)
    allow(role, ("s3:DeleteObject",), [lake.arn_for_objects(f"{layout.TABLES}*/data/*")], ANY_KEY)
    allow(role, ("s3:ListBucket",), [lake.bucket_arn])
    allow(role, ("glue:GetTable", "glue:UpdateTable"), catalog.iceberg_arns, ANY_TABLE)
    logs = Stack.of(scope).format_arn(
        service="logs",
        resource="log-group",
        resource_name=f"{LOG_GROUP}:*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    allow(role, ("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"), [logs], ANY_STREAM)
    if settings.encryption.kms_key:
        allow_key_as_used(role, settings.encryption.kms_key)
    actions = ("glue:CreateTableOptimizer", "glue:UpdateTableOptimizer")
    allow(function.role, actions, catalog.iceberg_arns, ANY_TABLE)
    allow(function.role, ("iam:PassRole",), [role.role_arn], conditions=PASSED)
    function.function.add_environment(OPTIMIZER_ROLE, role.role_arn)
