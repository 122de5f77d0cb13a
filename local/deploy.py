"""Deploys a cloud assembly of CDK unchanged: its file assets to the bootstrap bucket, then its stacks in order."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from local.errors import LocalCloudError
from local.isolation import ACCOUNT, BUCKET_PLACE, REGION, AwsClient

Clients = Callable[[str], AwsClient]

_POLL_SECONDS = 0.2
_MAX_STACK_SECONDS = 120
_MAX_INLINE_TEMPLATE_BYTES = 51_200
"""CloudFormation's limit for a template in a request; larger ones go through S3."""
_BOOTSTRAP_VERSION = "30"
_DONE = ("CREATE_COMPLETE", "UPDATE_COMPLETE")


def deploy_assembly(clients: Clients, cdk_out: Path) -> dict[str, str]:
    """Create or update every stack of the cloud assembly in ``cdk_out``; returns the outputs of all by key.

    ``clients`` returns the boto3 client of a service. Repeating a deployment changes nothing. Raises
    ``LocalCloudError``: the folder is not a cloud assembly, an asset is neither a file nor a folder, or a stack failed
    or did not end within 120 seconds; the message names the resource and the reason.
    """
    manifest_file = cdk_out / "manifest.json"
    if not manifest_file.is_file():
        raise LocalCloudError(f"{cdk_out} has no manifest.json: run the CDK app with this folder as its output first.")
    artifacts = json.loads(manifest_file.read_text())["artifacts"]
    for artifact in artifacts.values():
        if artifact["type"] == "cdk:asset-manifest":
            _upload_assets(clients, cdk_out, artifact["properties"]["file"])
    outputs: dict[str, str] = {}
    for name in _stacks_in_order(artifacts):
        properties = artifacts[name]["properties"]
        outputs |= _deploy_stack(clients, properties.get("stackName", name), cdk_out / properties["templateFile"])
    return outputs


def _stacks_in_order(artifacts: dict[str, Any]) -> Iterator[str]:
    remaining = [name for name, artifact in artifacts.items() if artifact["type"] == "aws:cloudformation:stack"]
    while remaining:
        ready = next(
            name for name in remaining if not set(artifacts[name].get("dependencies", ())) & (set(remaining) - {name})
        )
        remaining.remove(ready)
        yield ready


def _upload_assets(clients: Clients, cdk_out: Path, manifest: str) -> None:
    s3 = clients("s3")
    for asset in json.loads((cdk_out / manifest).read_text())["files"].values():
        source = asset["source"]
        if "path" not in source:
            raise LocalCloudError(
                f"{manifest}: asset {asset} is built by a command: the local cloud supports files and folders only."
            )
        path = cdk_out / source["path"]
        content = _zip(path) if source.get("packaging") == "zip" else path.read_bytes()
        for destination in asset["destinations"].values():
            bucket = _resolve_placeholders(destination["bucketName"])
            _ensure_bucket(s3, bucket)
            s3.put_object(Bucket=bucket, Key=_resolve_placeholders(destination["objectKey"]), Body=content)


def _resolve_placeholders(text: str) -> str:
    return (
        text.replace("${AWS::AccountId}", ACCOUNT).replace("${AWS::Region}", REGION).replace("${AWS::Partition}", "aws")
    )


def _zip(path: Path) -> bytes:
    if path.is_file():
        return path.read_bytes()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(path.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(path).as_posix())
    return buffer.getvalue()


def _deploy_stack(clients: Clients, name: str, template_file: Path) -> dict[str, str]:
    cloudformation = clients("cloudformation")
    template = template_file.read_text()
    _put_bootstrap_version(clients, json.loads(template))
    request = {"StackName": name, "Capabilities": ["CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]}
    request |= _template_argument(clients, name, template)
    try:
        if _describe_stack(cloudformation, name) is None:
            cloudformation.create_stack(**request)
        else:
            cloudformation.update_stack(**request)
    except ClientError as error:
        if "No updates are to be performed" not in str(error):
            raise LocalCloudError(f"Stack {name} was rejected: {error.response['Error']['Message']}") from error
    stack = _wait_for_stack(cloudformation, name)
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def _put_bootstrap_version(clients: Clients, template: dict[str, Any]) -> None:
    default = template.get("Parameters", {}).get("BootstrapVersion", {}).get("Default")
    if default:
        clients("ssm").put_parameter(Name=default, Value=_BOOTSTRAP_VERSION, Type="String", Overwrite=True)


def _template_argument(clients: Clients, name: str, template: str) -> dict[str, str]:
    if len(template.encode()) <= _MAX_INLINE_TEMPLATE_BYTES:
        return {"TemplateBody": template}
    s3 = clients("s3")
    bucket, key = f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}", f"{name}.template.json"
    _ensure_bucket(s3, bucket)
    s3.put_object(Bucket=bucket, Key=key, Body=template.encode())
    return {"TemplateURL": f"{s3.meta.endpoint_url}/{bucket}/{key}"}


def _ensure_bucket(s3: AwsClient, bucket: str) -> None:
    with suppress(s3.exceptions.BucketAlreadyOwnedByYou):
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration=BUCKET_PLACE)


def _describe_stack(cloudformation: AwsClient, name: str) -> dict[str, Any] | None:
    try:
        stack: dict[str, Any] = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    except ClientError:
        return None
    return None if stack["StackStatus"] == "DELETE_COMPLETE" else stack


def _wait_for_stack(cloudformation: AwsClient, name: str) -> dict[str, Any]:
    deadline = time.monotonic() + _MAX_STACK_SECONDS
    while True:
        stack = _describe_stack(cloudformation, name)
        status = "DELETED" if stack is None else stack["StackStatus"]
        if stack is not None and status in _DONE:
            return stack
        if not status.endswith("_IN_PROGRESS"):
            raise LocalCloudError(f"Stack {name} ended as {status}: {_first_failure(cloudformation, name)}")
        if time.monotonic() > deadline:
            raise LocalCloudError(
                f"Stack {name} is still {status} after {_MAX_STACK_SECONDS} seconds: read the emulator's log."
            )
        time.sleep(_POLL_SECONDS)


def _first_failure(cloudformation: AwsClient, name: str) -> str:
    events = cloudformation.describe_stack_events(StackName=name)["StackEvents"]
    failed = [event for event in reversed(events) if event["ResourceStatus"].endswith("_FAILED")]
    if not failed:
        return "no resource reported a reason: read the emulator's log."
    return (
        f"{failed[0]['LogicalResourceId']} ({failed[0]['ResourceType']}): {failed[0].get('ResourceStatusReason', '')}"
    )
