"""Encryption of every resource that stores data by the customer's KMS key, and the right to use the key.

The key is not part of the stack. Its policy must allow the services that act in their own name: S3, CloudWatch and
CloudWatch Logs. docs/deploy.md prints these statements.
"""

from collections.abc import Collection, Iterable, Sequence

from aws_cdk import Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs

from infra.allow import allow
from lake.settings import Settings

DECRYPTS = frozenset(
    {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query", "s3:GetObject", "sqs:ReceiveMessage"}
)
"""Actions that need ``kms:Decrypt``. DynamoDB decrypts a table's key for each caller, for writes too (but
every writer here also reads), and encrypts nothing for a caller
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.howitworks.html)."""
ENCRYPTS = frozenset({"s3:PutObject", "sns:Publish", "sqs:SendMessage"})
"""Actions that need ``kms:GenerateDataKey`` and ``kms:Decrypt`` (Amazon SNS Developer Guide, "Managing Amazon SNS
encryption keys and costs"; Amazon S3 User Guide, "Uploading and copying objects using multipart upload")."""


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


def grant_key(settings: Settings, job_roles: Sequence[iam.Role], roles: Iterable[iam.Role]) -> None:
    """Let the roles use the keys of the settings, only through the services that they call.

    ``roles`` include ``job_roles`` and already have all of their other permissions.
    """
    for key_arn in filter(None, (settings.input.kms_key, settings.encryption.bootstrap_key)):
        for role in job_roles:
            allow_key(role, key_arn, {"s3"})
    if settings.encryption.kms_key:
        for role in roles:
            allow_key_as_used(role, settings.encryption.kms_key)


def allow_key_as_used(role: iam.Role, key_arn: str) -> None:
    """Let ``role`` use the key through the services whose data its permissions let it read or write."""
    policy = role.node.find_child("DefaultPolicy")
    assert isinstance(policy, iam.Policy)
    found = (statement["Action"] for statement in policy.document.to_json()["Statement"])
    actions = {action for item in found for action in ([item] if isinstance(item, str) else item)}
    encrypts = {action.partition(":")[0] for action in actions & ENCRYPTS}
    allow_key(role, key_arn, encrypts | {action.partition(":")[0] for action in actions & DECRYPTS}, encrypts)


def allow_key(role: iam.Role, key_arn: str, decrypts: Collection[str], encrypts: Collection[str] = ()) -> None:
    """Let ``role`` decrypt and encrypt with the key, only through these services."""
    stack = Stack.of(role)
    for action, services in (("kms:Decrypt", decrypts), ("kms:GenerateDataKey", encrypts)):
        if services:
            via = [f"{service}.{stack.region}.{stack.url_suffix}" for service in sorted(services)]
            allow(role, (action,), [key_arn], conditions={"StringEquals": {"kms:ViaService": via}})
