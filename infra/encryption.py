"""Encryption of every resource that stores data by the customer's KMS key, and the right to use the key.

The key is not part of the stack. Its policy must allow the services that act in their own name: S3, CloudWatch and
CloudWatch Logs. docs/deploy.md prints these statements.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs

from infra.allow import allow
from infra.functions import RouterFunction
from infra.machines import Machines
from infra.schedules import Schedules
from lake.settings import Settings

S3, DYNAMODB, SQS, SNS, KINESIS = "s3", "dynamodb", "sqs", "sns", "kinesis"


@dataclass(frozen=True, slots=True)
class KeyUse:
    """The services through which a role uses the key."""

    reads: tuple[str, ...]
    """Services whose data the role reads: ``kms:Decrypt``."""
    writes: tuple[str, ...] = ()
    """Services to which the role writes data: ``kms:GenerateDataKey``."""


READ_LEDGER = KeyUse((DYNAMODB,))
READ_DOCUMENTS = KeyUse((DYNAMODB, S3))
WRITE_DOCUMENTS = KeyUse((DYNAMODB, S3), (S3,))
USES_OF_FUNCTIONS = {
    "route": KeyUse((DYNAMODB, S3, SQS), (S3,)),
    "plan": WRITE_DOCUMENTS,
    "backfill": WRITE_DOCUMENTS,
    "run_status": READ_DOCUMENTS,
    "settle": WRITE_DOCUMENTS,
    "sweep": WRITE_DOCUMENTS,
    "catalog": READ_LEDGER,
    "tables": WRITE_DOCUMENTS,
    "stream_control": READ_LEDGER,
    "promote": WRITE_DOCUMENTS,
    "reprocess": READ_DOCUMENTS,
    "resubmit": WRITE_DOCUMENTS,
}
"""Function -> its use of the key. DynamoDB decrypts a table's key for each caller, for writes too; it encrypts nothing
for a caller (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.howitworks.html)."""
PUBLISH_TO_TOPIC = KeyUse((SNS,), (SNS,))
"""SNS, SQS and S3's multipart uploads require both actions of the sender (Amazon SNS Developer Guide, "Managing Amazon
SNS encryption keys and costs"; Amazon S3 User Guide, "Uploading and copying objects using multipart upload")."""
SEND_TO_QUEUE = KeyUse((SQS,), (SQS,))
WRITE_OBJECTS = KeyUse((S3,), (S3,))
READ_KINESIS = KeyUse((KINESIS,))


def encrypt(stack: Stack, key_arn: str) -> None:
    """Encrypt every bucket, table, queue, topic and log group of the stack with the key.

    The properties are set on CloudFormation's resources: CDK's own grants for an encrypted queue let a role use the key
    without a condition.
    """
    rule = s3.CfnBucket.ServerSideEncryptionRuleProperty(
        # S3 asks KMS for one key of the bucket from time to time, not for a key of each object.
        bucket_key_enabled=True,
        server_side_encryption_by_default=s3.CfnBucket.ServerSideEncryptionByDefaultProperty(
            sse_algorithm="aws:kms", kms_master_key_id=key_arn
        ),
        blocked_encryption_types=s3.CfnBucket.BlockedEncryptionTypesProperty(encryption_type=["SSE-C"]),
    )
    for child in stack.node.find_all():
        if isinstance(child, s3.CfnBucket):
            child.bucket_encryption = s3.CfnBucket.BucketEncryptionProperty(server_side_encryption_configuration=[rule])
        elif isinstance(child, dynamodb.CfnGlobalTable):
            child.add_property_override("SSESpecification", {"SSEEnabled": True, "SSEType": "KMS"})
            child.add_property_override("Replicas.0.SSESpecification", {"KMSMasterKeyId": key_arn})
        elif isinstance(child, sqs.CfnQueue):
            child.sqs_managed_sse_enabled = None
            child.kms_master_key_id = key_arn
        elif isinstance(child, sns.CfnTopic):
            child.kms_master_key_id = key_arn
        elif isinstance(child, logs.CfnLogGroup):
            child.kms_key_id = key_arn


def grant_key(
    settings: Settings,
    functions: Mapping[str, RouterFunction],
    job_roles: Sequence[iam.Role],
    machines: Machines,
    schedules: Schedules,
) -> None:
    """Let each role use the keys of the settings, only through the services that it calls.

    Raises ``KeyError`` if a function has no entry in ``USES_OF_FUNCTIONS``.
    """
    key_arn, input_key_arn = settings.encryption.kms_key, settings.input.kms_key
    for read_key_arn in filter(None, (input_key_arn, settings.encryption.bootstrap_key)):
        for role in job_roles:
            allow_key(role, read_key_arn, KeyUse((S3,)))
    if not key_arn:
        return
    for name, function in functions.items():
        allow_key(function.role, key_arn, USES_OF_FUNCTIONS[name])
    for role in job_roles:
        allow_key(role, key_arn, WRITE_DOCUMENTS)
    allow_key(schedules.role, key_arn, SEND_TO_QUEUE)
    for machine in machines.all:
        allow_key(machine.role, key_arn, PUBLISH_TO_TOPIC)
    # Its Map reads the index of the plan.
    allow_key(machines.overnight.role, key_arn, KeyUse((S3,)))


def allow_key(role: iam.Role, key_arn: str, use: KeyUse) -> None:
    """Let ``role`` use the key only through the services of ``use``."""
    stack = Stack.of(role)
    for action, services in (("kms:Decrypt", use.reads), ("kms:GenerateDataKey", use.writes)):
        if services:
            via = [f"{service}.{stack.region}.{stack.url_suffix}" for service in services]
            allow(role, (action,), [key_arn], conditions={"StringEquals": {"kms:ViaService": via}})
