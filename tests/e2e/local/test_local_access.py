"""Only programs with an access key of the local cloud can use it, and only at its own address."""

import http.client
import json
import stat
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from lake.faults import refused_key
from local import isolation
from local.isolation import ACCOUNT, BUCKET_PLACE, REGION, AccessKey

KEY = f"arn:aws:kms:{REGION}:999988887777:key/1234abcd-12ab-34cd-56ef-1234567890ab"
UNKNOWN_KEYS = [
    AccessKey("test", "test"),
    AccessKey(ACCOUNT, "test"),
    AccessKey.random(),
]


@pytest.mark.parametrize("key", UNKNOWN_KEYS, ids=["test", "account", "random"])
@pytest.mark.parametrize(
    ("service", "operation"),
    [
        ("s3", "list_buckets"),
        ("glue", "get_jobs"),
        ("dynamodb", "list_tables"),
        ("lambda", "list_functions"),
        ("stepfunctions", "list_state_machines"),
        ("sqs", "list_queues"),
        ("iam", "list_roles"),
        ("cloudformation", "list_stacks"),
    ],
)
def test_a_key_that_the_cloud_did_not_give_out_is_refused(cloud, key, service, operation):
    client = isolation.client(service, cloud.endpoint, key)
    with pytest.raises(ClientError) as refused:
        getattr(client, operation)()
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] in (400, 401, 403)


def test_a_key_with_a_wrong_secret_is_refused(cloud):
    user = cloud.client("iam").create_user(UserName="someone")["User"]["UserName"]
    key = cloud.client("iam").create_access_key(UserName=user)["AccessKey"]
    for secret, code in ((key["SecretAccessKey"], "AccessDenied"), ("wrong", "SignatureDoesNotMatch")):
        client = isolation.client("s3", cloud.endpoint, AccessKey(key["AccessKeyId"], secret))
        with pytest.raises(ClientError) as refused:
            client.list_buckets()
        assert refused.value.response["Error"]["Code"] == code


@pytest.fixture(scope="module")
def bucket(cloud):
    """A bucket with the statement of the stack's input bucket: no request may name a KMS key."""
    s3, name = cloud.client("s3"), "refuses-keys"
    s3.create_bucket(Bucket=name, CreateBucketConfiguration=BUCKET_PLACE)
    s3.put_object(Bucket=name, Key="under-a-key", Body=b"{}", ServerSideEncryption="aws:kms", SSEKMSKeyId=KEY)
    deny = {
        "Effect": "Deny",
        "Principal": {"AWS": "*"},
        "Action": "s3:PutObject",
        "Resource": f"arn:aws:s3:::{name}/*",
        "Condition": {"Null": {"s3:x-amz-server-side-encryption-aws-kms-key-id": "false"}},
    }
    s3.put_bucket_policy(Bucket=name, Policy=json.dumps({"Version": "2012-10-17", "Statement": [deny]}))
    return name


def test_the_policy_of_a_bucket_is_the_accounts_owners_too(cloud, bucket):
    s3 = cloud.client("s3")
    s3.put_object(Bucket=bucket, Key="a", Body=b"{}")
    under_key = {"Bucket": bucket, "Key": "a", "ServerSideEncryption": "aws:kms", "SSEKMSKeyId": KEY}
    for put in (s3.put_object, s3.create_multipart_upload):
        with pytest.raises(ClientError, match=r"AccessDenied.*explicit deny in a resource-based policy"):
            put(**under_key)


def test_a_refusal_names_the_key_that_may_not_be_used(cloud, bucket):
    # Given a user who may read the object, but not use its key
    s3 = _client_of_user(cloud, "reader", "s3:*", "*")
    # Then the product finds the key in the refusal, as in S3's own
    with pytest.raises(ClientError) as refused:
        s3.get_object(Bucket=bucket, Key="under-a-key")
    assert refused_key(refused.value) == KEY


def test_a_key_of_control_characters_is_listed_and_matches_a_wildcard(cloud):
    # Given a user who may use all objects of a bucket
    s3, key = cloud.client("s3"), "orders/\x01\n \u2028&+%41.ndjson"
    s3.create_bucket(Bucket="odd-keys", CreateBucketConfiguration=BUCKET_PLACE)
    s3.put_bucket_versioning(Bucket="odd-keys", VersioningConfiguration={"Status": "Enabled"})
    client = _client_of_user(cloud, "writer", "s3:*Object", "arn:aws:s3:::odd-keys/*")
    # When
    client.put_object(Bucket="odd-keys", Key=key, Body=b"{}")
    # Then
    assert [item["Key"] for item in s3.list_object_versions(Bucket="odd-keys", Prefix=key)["Versions"]] == [key]


def _client_of_user(cloud, user, action, resource):
    iam = cloud.client("iam")
    iam.create_user(UserName=user)
    statement = {"Effect": "Allow", "Action": action, "Resource": resource}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName=user, PolicyName="own", PolicyDocument=policy)
    key = iam.create_access_key(UserName=user)["AccessKey"]
    return isolation.client("s3", cloud.endpoint, AccessKey(key["AccessKeyId"], key["SecretAccessKey"]))


def _status(cloud, path, headers):
    with closing(http.client.HTTPConnection(urlsplit(cloud.endpoint).netloc, timeout=10)) as connection:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/_ministack/health", {"Host": "attacker.example"}),
        ("/_ministack/health", {"Host": "attacker.example:4566"}),
        ("/_ministack/health", {"Origin": "https://attacker.example"}),
        ("/_ministack/health", {"Origin": "null"}),
        ("/_ministack/config", {}),
        ("/_ministack/reset", {}),
    ],
)
def test_requests_without_a_key_of_web_pages_and_for_the_emulators_own_interface_are_refused(cloud, path, headers):
    assert _status(cloud, path, headers) == 403
    assert _status(cloud, "/_ministack/health", {}) == 200


def test_its_folder_is_closed_to_other_users(cloud):
    assert stat.S_IMODE(cloud.state_dir.stat().st_mode) == 0o700
