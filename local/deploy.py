"""Deploys a cloud assembly of CDK unchanged: its file assets to the bootstrap bucket, then its stack."""

import io
import json
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from botocore.exceptions import ClientError, WaiterError

from local.errors import LocalCloudError
from local.isolation import ACCOUNT, BUCKET_PLACE, REGION, AwsClient

Clients = Callable[[str], AwsClient]

_POLL_SECONDS = 0.2
_MAX_STACK_SECONDS = 120
_BOOTSTRAP_VERSION = "30"
_ASSETS_BUCKET = f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"


def deploy_assembly(clients: Clients, cdk_out: Path) -> dict[str, str]:
    """Create or update the stack of the cloud assembly in ``cdk_out``; returns its outputs by key.

    ``clients`` returns the boto3 client of a service. Repeating a deployment changes nothing. Raises
    ``LocalCloudError``: the folder is not a cloud assembly, or the stack failed or did not end within 120 seconds; the
    message names the resource and the reason.
    """
    manifest_file = cdk_out / "manifest.json"
    if not manifest_file.is_file():
        raise LocalCloudError(f"{cdk_out} has no manifest.json: run the CDK app with this folder as its output first.")
    s3 = clients("s3")
    with suppress(s3.exceptions.BucketAlreadyOwnedByYou):
        s3.create_bucket(Bucket=_ASSETS_BUCKET, CreateBucketConfiguration=BUCKET_PLACE)
    artifacts = json.loads(manifest_file.read_text())["artifacts"]
    for artifact in artifacts.values():
        if artifact["type"] == "cdk:asset-manifest":
            _upload_assets(s3, cdk_out, artifact["properties"]["file"])
    ((name, stack),) = (item for item in artifacts.items() if item[1]["type"] == "aws:cloudformation:stack")
    properties = stack["properties"]
    return _deploy_stack(clients, properties.get("stackName", name), cdk_out / properties["templateFile"])


def _upload_assets(s3: AwsClient, cdk_out: Path, manifest: str) -> None:
    for asset in json.loads((cdk_out / manifest).read_text())["files"].values():
        path = cdk_out / asset["source"]["path"]
        content = _zip(path) if asset["source"].get("packaging") == "zip" else path.read_bytes()
        for destination in asset["destinations"].values():
            bucket = _resolve_placeholders(destination["bucketName"])
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
    cloudformation, s3 = clients("cloudformation"), clients("s3")
    template = template_file.read_text()
    version = json.loads(template).get("Parameters", {}).get("BootstrapVersion", {}).get("Default")
    if version:
        clients("ssm").put_parameter(Name=version, Value=_BOOTSTRAP_VERSION, Type="String", Overwrite=True)
    key = f"{name}.template.json"
    s3.put_object(Bucket=_ASSETS_BUCKET, Key=key, Body=template.encode())
    exists = any(stack["StackName"] == name for stack in cloudformation.describe_stacks()["Stacks"])
    change, end = (
        (cloudformation.update_stack, "stack_update_complete")
        if exists
        else (cloudformation.create_stack, "stack_create_complete")
    )
    try:
        change(
            StackName=name,
            TemplateURL=f"{s3.meta.endpoint_url}/{_ASSETS_BUCKET}/{key}",
            Capabilities=["CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
        )
        polls = {"Delay": _POLL_SECONDS, "MaxAttempts": int(_MAX_STACK_SECONDS / _POLL_SECONDS)}
        cloudformation.get_waiter(end).wait(StackName=name, WaiterConfig=polls)
    except WaiterError as error:
        raise LocalCloudError(f"Stack {name} failed: {_first_failure(cloudformation, name)}") from error
    except ClientError as error:
        if "No updates are to be performed" not in str(error):
            raise LocalCloudError(f"Stack {name} was rejected: {error.response['Error']['Message']}") from error
    (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def _first_failure(cloudformation: AwsClient, name: str) -> str:
    events = cloudformation.describe_stack_events(StackName=name)["StackEvents"]
    failed = [event for event in reversed(events) if event["ResourceStatus"].endswith("_FAILED")]
    if not failed:
        return "no resource reported a reason: read the emulator's log."
    return (
        f"{failed[0]['LogicalResourceId']} ({failed[0]['ResourceType']}): {failed[0].get('ResourceStatusReason', '')}"
    )
