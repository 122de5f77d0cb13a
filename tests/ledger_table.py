"""The ledger's table and the buckets of a stage, for all tests that need them."""

from typing import Any

from lake.resource_names import ResourceNames
from local.isolation import BUCKET_PLACE


def create_stage(s3: Any, dynamodb: Any, name: str, *, versions: bool) -> ResourceNames:
    """Buckets and a ledger with unique names; ``versions``: the input bucket has versions."""
    buckets = [f"{name}-{bucket}" for bucket in ("input", "lake", "quarantine", "control")]
    resources = ResourceNames(*buckets, f"{name}-ledger", f"{name}-stream", f"{name}-batch", f"{name}_lake")  # type: ignore[call-arg]
    for bucket in buckets:
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration=BUCKET_PLACE)
    if versions:
        s3.put_bucket_versioning(Bucket=resources.input_bucket, VersioningConfiguration={"Status": "Enabled"})
    create_ledger_table(dynamodb, resources.ledger_table)
    return resources


def create_ledger_table(dynamodb: Any, name: str) -> None:
    """The ledger's table and index, as the stack creates them."""
    names = ("pk", "sk", "open", "open_order")
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "open",
                "KeySchema": [
                    {"AttributeName": "open", "KeyType": "HASH"},
                    {"AttributeName": "open_order", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
