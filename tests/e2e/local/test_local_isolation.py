"""No process of the local cloud can reach a real AWS account, whatever the user's machine is configured for."""

import json
import socket
import threading
from contextlib import closing

import pytest

from local.cloud import LocalCloud
from local.isolation import ACCOUNT
from tests.e2e.local.conftest import BUCKET, Probe

_CONFIG = """
[default]
region = eu-central-1
endpoint_url = {trap}
credential_process = /bin/sh -c "touch {witness}; exit 1"
services = trapped
[profile work]
role_arn = arn:aws:iam::123456789012:role/admin
source_profile = default
endpoint_url = {trap}
services = trapped
[services trapped]
s3 =
  endpoint_url = {trap}
"""


@pytest.fixture
def trap():
    """A listener instead of proxy and endpoint; yields its URL and the list of its clients."""
    visitors: list[object] = []
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def accept() -> None:
            while True:
                try:
                    connection, address = listener.accept()
                except OSError:
                    return
                visitors.append(address)
                connection.close()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", visitors
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def hostile_machine(monkeypatch, tmp_path, trap):
    """Home and environment of a user whose AWS settings all lead to the trap; returns the witnesses of a leak."""
    url, visitors = trap
    witness = tmp_path / "credential-process-ran"
    config = tmp_path / "home" / ".aws" / "config"
    config.parent.mkdir(parents=True)
    config.write_text(_CONFIG.format(trap=url, witness=witness))
    (config.parent / "credentials").write_text("[default]\naws_access_key_id=AKIAREAL\naws_secret_access_key=real\n")
    (config.parents[1] / ".boto").write_text("[Credentials]\naws_access_key_id=AKIAREAL\naws_secret_access_key=real\n")
    real = {"AWS_ACCESS_KEY_ID": "AKIAREAL", "AWS_SECRET_ACCESS_KEY": "real", "AWS_SESSION_TOKEN": "real"}
    role = {"AWS_ROLE_ARN": "arn:aws:iam::1:role/r", "AWS_WEB_IDENTITY_TOKEN_FILE": str(config)}
    container = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": url, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "real"}
    endpoints = {f"AWS_ENDPOINT_URL{suffix}": url for suffix in ("", "_S3", "_GLUE", "_STS", "_LAMBDA", "_DYNAMODB")}
    proxies = dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"), url)
    options = {
        "AWS_PROFILE": "work",
        "AWS_DEFAULT_PROFILE": "work",
        "AWS_CONFIG_FILE": str(config),
        "AWS_SHARED_CREDENTIALS_FILE": str(config.parent / "credentials"),
        "AWS_CA_BUNDLE": str(config),
        "AWS_USE_FIPS_ENDPOINT": "true",
        "AWS_USE_DUALSTACK_ENDPOINT": "true",
        "AWS_REGION": "eu-central-1",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "HOME": str(config.parents[1]),
        "JAVA_TOOL_OPTIONS": f"-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={url.rsplit(':', 1)[1]}",
        "SPARK_HOME": str(tmp_path),
        "SPARK_CONF_DIR": str(tmp_path),
        "PYTHONPATH": str(tmp_path),
        "NO_PROXY": "",
        "no_proxy": "",
        "AUTH": "true",
        "PERSIST_STATE": "1",
    }
    for name, value in {**real, **role, **container, **endpoints, **proxies, **options}.items():
        monkeypatch.setenv(name, value)
    return witness, visitors


def test_every_kind_of_client_talks_to_the_emulator_with_fake_credentials(hostile_machine, tmp_path):
    witness, visitors = hostile_machine
    with LocalCloud.start(tmp_path / "cloud") as cloud:
        probe, s3 = Probe.create(cloud), cloud.client("s3")
        # The driver
        for service in ("s3", "glue", "lambda", "sts", "dynamodb", "stepfunctions"):
            assert cloud.client(service).meta.endpoint_url == cloud.endpoint
        assert cloud.client("sts").get_caller_identity()["Account"] == ACCOUNT
        # A Lambda function, and a Glue run's boto3
        probe.run(task="look", target=f"{BUCKET}/look.json")
        of_run = json.loads(s3.get_object(Bucket=BUCKET, Key="look.json")["Body"].read())
        for seen in (probe.invoke({"look": "s3"}), of_run):
            assert seen["endpoint"] == cloud.endpoint
            assert seen["access_key"].startswith("ASIA")
            foreign = {name: value for name, value in seen["environment"].items() if "AKIA" in value or "real" in value}
            assert not foreign
            assert not {"AWS_PROFILE", "AWS_ENDPOINT_URL_S3", "AWS_ROLE_ARN", "HTTP_PROXY"} & set(seen["environment"])
            assert str(tmp_path) not in seen["path"]
        # A job learns its region only from its arguments: Glue documents no variable for it
        assert not {"AWS_REGION", "AWS_DEFAULT_REGION"} & set(of_run["environment"])
        # A Python worker of a Glue run's Spark
        s3.put_object(Bucket=BUCKET, Key="code/extra_module.py", Body=b"SUFFIX = '?'")
        probe.run(task="spark", target=f"{BUCKET}/out", extra_py_files=f"s3://{BUCKET}/code/extra_module.py")
        assert s3.get_object(Bucket=BUCKET, Key="out")["Body"].read() == b"A?"
    assert not witness.exists()
    assert visitors == []
