"""Only programs with an access key that the local cloud gave out can use it, and only at its own address."""

import http.client
import json
import stat
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from local import isolation
from local.isolation import ACCOUNT, AccessKey

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


def test_a_key_of_control_characters_is_listed_and_matches_a_wildcard(cloud):
    # Given a user who may use all objects of a bucket
    s3, iam, key = cloud.client("s3"), cloud.client("iam"), "orders/\x01\n \u2028&+%41.ndjson"
    s3.create_bucket(Bucket="odd-keys", CreateBucketConfiguration={"LocationConstraint": isolation.REGION})
    s3.put_bucket_versioning(Bucket="odd-keys", VersioningConfiguration={"Status": "Enabled"})
    user = iam.create_user(UserName="reader")["User"]["UserName"]
    allow = {"Effect": "Allow", "Action": "s3:*Object", "Resource": "arn:aws:s3:::odd-keys/*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
    iam.put_user_policy(UserName=user, PolicyName="objects", PolicyDocument=policy)
    access = iam.create_access_key(UserName=user)["AccessKey"]
    client = isolation.client("s3", cloud.endpoint, AccessKey(access["AccessKeyId"], access["SecretAccessKey"]))
    # When
    client.put_object(Bucket="odd-keys", Key=key, Body=b"{}")
    # Then
    assert [item["Key"] for item in s3.list_object_versions(Bucket="odd-keys", Prefix=key)["Versions"]] == [key]


def _status(cloud, path, headers):
    with closing(http.client.HTTPConnection(urlsplit(cloud.endpoint).netloc, timeout=10)) as connection:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status


def test_a_request_without_a_key_is_refused(cloud):
    assert _status(cloud, "/", {}) == 403


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/_ministack/health", {"Host": "attacker.example"}),
        ("/_ministack/health", {"Host": "attacker.example:4566"}),
        ("/_ministack/health", {"Origin": "https://attacker.example"}),
        ("/_ministack/health", {"Origin": "null"}),
        ("/_ministack/config", {}),
        ("/_ministack/reset", {}),
    ],
)
def test_requests_of_web_pages_and_the_emulators_own_interface_are_refused(cloud, path, headers):
    assert _status(cloud, path, headers) == 403


def test_the_health_page_needs_no_key(cloud):
    assert _status(cloud, "/_ministack/health", {}) == 200


def test_its_folder_is_closed_to_other_users(cloud):
    assert stat.S_IMODE(cloud.state_dir.stat().st_mode) == 0o700
