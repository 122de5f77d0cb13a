"""KMS keys of resources: to read or write an encrypted resource, a caller also needs the right to use its key.

The emulator encrypts nothing and checks no such right. Sources of what each request needs: Amazon S3 User Guide, "Using
server-side encryption with AWS KMS keys"; Amazon SQS and Amazon SNS Developer Guides, key management; Amazon DynamoDB
Developer Guide, "DynamoDB encryption at rest"; Amazon CloudWatch Logs User Guide, "Encrypt log data".
"""

from ministack.core import iam_actions, iam_evaluator  # type: ignore[import-untyped]
from ministack.services import dynamodb, kms, s3, sns, sqs  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue, Original, wrap, wrap_handler
from local.emulator_patches.identities.requests import KEY_HEADER, log_refusal
from local.isolation import ACCOUNT, REGION

DECRYPT, GENERATE = "kms:Decrypt", "kms:GenerateDataKey"
ACTIONS = {
    "s3:GetObject": (DECRYPT,),
    "sns:Publish": (GENERATE, DECRYPT),
    "sqs:ReceiveMessage": (DECRYPT,),
    "sqs:SendMessage": (GENERATE, DECRYPT),
}
"""Action that the emulator carries out in its own process -> rights that it needs on its resource's key."""
LOG_ACTIONS = ("kms:Encrypt", DECRYPT, "kms:ReEncryptFrom", GENERATE, "kms:DescribeKey")


def patch() -> None:
    wrap_handler("AWS::SNS::Topic", "create", _create_topic)
    wrap_handler("AWS::DynamoDB::GlobalTable", "create", _create_table)
    wrap_handler("AWS::DynamoDB::GlobalTable", "update", _update_table)
    wrap_handler("AWS::Logs::LogGroup", "create", _create_log_group)
    wrap(iam_actions, "s3_additional_checks", _additional_checks)
    wrap(iam_evaluator, "enforce", _enforce)
    wrap(sqs, "queue_policy_allows", _allows_with_key)
    wrap(sns, "topic_policy_allows", _allows_with_key)


def needed(action: str, resource: str) -> list[tuple[str, str, dict[str, str]]]:
    """Return what ``action`` needs in addition: an action of KMS, the key, and the condition keys of the request."""
    key = _key_of(resource) if action in ACTIONS else None
    return [(item, key, via(action.partition(":")[0])) for item in ACTIONS[action]] if key else []


def via(service: str) -> dict[str, str]:
    """Return the condition key that names the service that uses a key for a caller."""
    return {"kms:viaservice": f"{service}.{REGION}.amazonaws.com"}


def _key_of(resource: str) -> EmulatorValue:
    service = resource.split(":")[2]
    if service == "s3":
        bucket, _, key = resource.removeprefix("arn:aws:s3:::").partition("/")
        return _key_of_object(bucket, key)
    if service == "sqs":
        queue = sqs._queue_by_arn(resource)
        return queue and queue["attributes"].get("KmsMasterKeyId")
    topic = sns._topics.get(resource)
    return topic and topic["attributes"].get("KmsMasterKeyId")


def _key_of_object(bucket: str, key: str) -> EmulatorValue:
    """Return the current object's key, or the bucket's if there is no object, or only older versions."""
    item = s3._buckets.get(bucket, {}).get("objects", {}).get(key)
    if item is not None:
        return item.get("preserved_headers", {}).get(KEY_HEADER)
    return s3._bucket_default_sse_headers(bucket).get(KEY_HEADER)


def _additional_checks(original: Original, *request: EmulatorValue) -> list[tuple[str, str]]:
    """Add the checks of keys to requests for objects over HTTP."""
    method, path, headers, _body, query = request
    asked: list[tuple[str, str]] = original(*request)
    bucket, _, key = path.lstrip("/").partition("/")
    if not key:
        return asked
    actions: tuple[str, ...]
    if "uploadId" in query:
        upload = s3._multipart_uploads.get(s3._qp(query, "uploadId")) or {}
        arn = upload.get("preserved_headers", {}).get(KEY_HEADER)
        actions = {"PUT": (GENERATE, DECRYPT), "POST": (GENERATE, DECRYPT)}.get(method, ())
    elif method in ("PUT", "POST"):
        arn, actions = s3._bucket_default_sse_headers(bucket).get(KEY_HEADER), (GENERATE,)
    else:
        reads = method == "GET" or (method == "HEAD" and "x-amz-checksum-mode" in headers)
        arn, actions = _key_of_object(bucket, key), (DECRYPT,) if reads else ()
    return [*asked, *((action, arn) for action in actions if arn)]


def _enforce(
    original: Original, access_key: str, action: str, service: str, region: str, **options: EmulatorValue
) -> EmulatorValue:
    """Check the key of an item; the key of an object is among the additional checks."""
    if action.startswith("kms:") and service == "s3":
        return original(access_key, action, "kms", region, **{**options, "service_context": via("s3")})
    denied = original(access_key, action, service, region, **options)
    if denied or service != "dynamodb":
        return denied
    name = options.get("resource_arn", "*").partition(":table/")[2].partition("/")[0]
    key = ((dynamodb._tables.get(name) or {}).get("SSEDescription") or {}).get("KMSMasterKeyArn")
    if key is None:
        return None
    return original(access_key, DECRYPT, "kms", region, resource_arn=key, service_context=via("dynamodb"))


def _allows_with_key(original: Original, resource: str, service: str, source_arn: str, source_account: str) -> bool:
    """A service that sends in its own name needs the key's own policy. S3's page gives no condition key for it."""
    if not original(resource, service, source_arn, source_account):
        return False
    key = _key_of(resource)
    source = {} if service.startswith("s3.") else {"aws:sourcearn": source_arn, "aws:sourceaccount": source_account}
    return key is None or _service_may(service, (GENERATE, DECRYPT), key, source)


def _service_may(service: str, actions: tuple[str, ...], key: str, keys: dict[str, str]) -> bool:
    policy = (kms.key_policy_for_arn(key) or ("", ""))[0]
    for action in actions:
        asked = iam_evaluator.EvalContext("*", "Service", "", action, key, REGION, service_context=keys)
        if iam_evaluator.evaluate_resource_policy(policy, asked, service=service).decision != "Allow":
            log_refusal(service, f"{action} on {key}: its policy does not allow it")
            return False
    return True


def _create_topic(original: Original, logical_id: str, props: EmulatorValue, stack: str) -> EmulatorValue:
    """The emulator drops the key of a topic, and of a table."""
    arn, attributes = original(logical_id, props, stack)
    if "KmsMasterKeyId" in props:
        sns._topics[arn]["attributes"]["KmsMasterKeyId"] = props["KmsMasterKeyId"]
    return arn, attributes


def _create_table(original: Original, logical_id: str, props: EmulatorValue, stack: str) -> EmulatorValue:
    return _table_with_key(props, original(logical_id, props, stack))


def _update_table(original: Original, name: str, old: EmulatorValue, props: EmulatorValue, stack: str) -> EmulatorValue:
    """Keep a table when its template changes: the emulator would create an empty table with another name."""
    before, after = ({**given, "TableName": name, "SSESpecification": None} for given in (old, props))
    return _table_with_key(props, original(name, before, after, stack))


def _table_with_key(props: EmulatorValue, made: EmulatorValue) -> EmulatorValue:
    (replica,), name = props["Replicas"], made[0]
    key = replica.get("SSESpecification", {}).get("KMSMasterKeyId")
    description = {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": key}
    dynamodb._tables[name]["SSEDescription"] = description if key else None
    return made


def _create_log_group(original: Original, logical_id: str, props: EmulatorValue, stack: str) -> EmulatorValue:
    """A log group needs the policy of its key."""
    name, attributes = original(logical_id, props, stack)
    context = {"kms:encryptioncontext:aws:logs:arn": f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{name}"}
    key = props.get("KmsKeyId")
    if key and not _service_may(f"logs.{REGION}.amazonaws.com", LOG_ACTIONS, key, context):
        raise ValueError(f"The specified KMS key does not exist or is not allowed to be used with {name}")
    return name, attributes
