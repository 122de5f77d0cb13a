"""Resources that hold data: buckets for input (new or existing), lake, quarantine and control, ledger, databases."""

from collections.abc import Sequence

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.allow import acknowledge_finding
from lake import layout
from lake.ledger.arrivals import EXPIRY
from lake.ledger.table import OPEN_INDEX
from lake.resource_names import ResourceNames
from lake.settings import Settings
from lake.settings.operation import KEPT_VERSION_DAYS, min_keep_days

NO_ACCESS_LOGS = (
    "Server access logs would add several log lines for each of up to 300,000 objects a day, and their storage. The "
    "ledger records what happened to each object; CloudTrail data events are the account owner's decision."
)
UNFINISHED_UPLOAD_DAYS = 14
"""Age at which S3 removes unfinished multipart uploads.

An execution can be redriven for 14 days; its runs complete uploads that earlier runs began.
"""
EVENT_LOG_DAYS = 30
"""Age at which S3 removes Spark's event logs, as the jobs' other logs, even after the setting was switched off."""
PART_DAYS = 90
"""Age at which S3 removes the documents of parts. They are read until their hour is divided; each sweep reports an hour
that cannot be divided."""
KEY_OF_REQUEST = "s3:x-amz-server-side-encryption-aws-kms-key-id"
"""Condition key: the KMS key that a request names (Service Authorization Reference, "Amazon S3")."""
KEPT = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
"""CloudFormation retains what holds data, with the policies of the buckets, even when the stack is deleted. Only
resources that a failed deployment created are deleted with it: each further try would leave empty ones.
"""


class Storage(Construct):
    """Every resource that holds data; see ``KEPT``."""

    def __init__(self, scope: Construct, name: str, settings: Settings) -> None:
        super().__init__(scope, name)
        self.input = self._input(settings)
        protection = settings.protection
        # Set even without protection: versions from before it was switched off would be billed for ever.
        old_versions = s3.LifecycleRule(
            id="old-versions",
            noncurrent_version_expiration=Duration.days(KEPT_VERSION_DAYS),
            # A marker that hides no version any more only slows down listings.
            expired_object_delete_marker=True,
        )
        self.lake = self._bucket("Lake", versioned=protection.versions, rules=[old_versions])
        self.quarantine = self._bucket("Quarantine", versioned=protection.versions, rules=[old_versions])
        documents = [
            s3.LifecycleRule(id="event-logs", prefix=layout.SPARK_LOGS, expiration=Duration.days(EVENT_LOG_DAYS)),
            s3.LifecycleRule(id="parts", prefix=layout.PARTS, expiration=Duration.days(PART_DAYS)),
        ]
        self.control = self._bucket("Control", versioned=protection.versions, rules=[old_versions, *documents])
        self.ledger = dynamodb.TableV2(
            self,
            "Ledger",
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            billing=dynamodb.Billing.on_demand(),
            global_secondary_indexes=[
                dynamodb.GlobalSecondaryIndexPropsV2(
                    index_name=OPEN_INDEX,
                    partition_key=dynamodb.Attribute(name="open", type=dynamodb.AttributeType.STRING),
                    sort_key=dynamodb.Attribute(name="open_order", type=dynamodb.AttributeType.STRING),
                    projection_type=dynamodb.ProjectionType.ALL,
                )
            ],
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            time_to_live_attribute=EXPIRY,
            deletion_protection=protection.deletion,
            removal_policy=KEPT,
        )

    def _input(self, settings: Settings) -> s3.IBucket:
        if settings.input.bucket:
            # Each bucket has its own notification in the template. CDK's function looks only at the new bucket of a
            # changed notification, and the old bucket would continue to send events.
            return s3.Bucket.from_bucket_name(self, f"Input-{settings.input.bucket}", settings.input.bucket)
        rules = []
        if settings.input.keep_days:
            # A replaced version may wait for its conversion, so it has its own time. S3 accepts the removal of delete
            # markers only in a rule without days.
            rules = [
                s3.LifecycleRule(
                    id="old-files",
                    expiration=Duration.days(settings.input.keep_days),
                    noncurrent_version_expiration=Duration.days(min_keep_days(settings.schedule)),
                ),
                s3.LifecycleRule(id="old-markers", expired_object_delete_marker=True),
            ]
        bucket = self._bucket("Input", versioned=True, rules=rules)
        bucket.add_to_resource_policy(_refuse_other_keys(bucket, settings.encryption.kms_key))
        return bucket

    def _bucket(self, name: str, *, versioned: bool, rules: Sequence[s3.LifecycleRule] = ()) -> s3.Bucket:
        bucket = s3.Bucket(
            self,
            name,
            versioned=versioned,
            encryption=s3.BucketEncryption.S3_MANAGED,
            # No job has the key of such an object. New buckets have this since April 2026, but not everywhere.
            blocked_encryption_types=[s3.BlockedEncryptionType.SSE_C],
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="unfinished-uploads",
                    abort_incomplete_multipart_upload_after=Duration.days(UNFINISHED_UPLOAD_DAYS),
                ),
                *rules,
            ],
            removal_policy=KEPT,
        )
        assert bucket.policy is not None, "enforce_ssl makes it"
        bucket.policy.apply_removal_policy(KEPT)
        acknowledge_finding(bucket, "AwsSolutions-S1", NO_ACCESS_LOGS)
        return bucket


def _refuse_other_keys(bucket: s3.Bucket, own_key: str) -> iam.PolicyStatement:
    """Refuses objects under a KMS key that the request names: only the key's owner decides whether a job may read them.

    A request that names no key gets the bucket's. ``own_key`` is the ARN of the stack's key; empty: any key is refused.
    """
    conditions: dict[str, dict[str, str]] = {"Null": {KEY_OF_REQUEST: "false"}}
    if own_key:
        conditions["StringNotEquals"] = {KEY_OF_REQUEST: own_key}
    return iam.PolicyStatement(
        sid="OtherKeys",
        effect=iam.Effect.DENY,
        principals=[iam.AnyPrincipal()],
        actions=["s3:PutObject"],
        resources=[bucket.arn_for_objects("*")],
        conditions=conditions,
    )


class Catalog(Construct):
    """The databases of the lake's tables."""

    def __init__(self, scope: Construct, name: str, resources: ResourceNames, storage: Storage) -> None:
        super().__init__(scope, name)
        self._storage = storage
        self._add_database("Database", resources.catalog_database, "catalog")
        self._add_database("Tables", resources.tables_database, "tables")
        self.table_arns = self._arns(resources.catalog_database)
        """The resources on which Glue checks the permission to create or update a Hive table."""
        self.iceberg_arns = self._arns(resources.tables_database)

    def _add_database(self, construct: str, database_name: str, function: str) -> None:
        glue.Database(
            self,
            construct,
            database_name=database_name,
            description=f"hybrid-router: one table per dataset, maintained by the function {function}",
            location_uri=self._storage.lake.s3_url_for_object(""),
            # Tables can be rebuilt from the files. The name of a retained database would block the next deployment.
            removal_policy=RemovalPolicy.DESTROY,
        )

    def _arns(self, database_name: str) -> list[str]:
        stack = Stack.of(self)
        return [
            stack.format_arn(service="glue", resource="catalog"),
            stack.format_arn(service="glue", resource="database", resource_name=database_name),
            stack.format_arn(service="glue", resource="table", resource_name=f"{database_name}/*"),
        ]
