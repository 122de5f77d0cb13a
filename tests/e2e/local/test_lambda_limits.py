"""Functions and their callers are refused what Lambda refuses: large payloads, time, memory and environments."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from tests.e2e.waiting import wait_for
from tests.roles import create_unlimited_role

MAX_REQUEST_BYTES = 6_291_456
MAX_RESPONSE_BYTES = 6_291_556
HANDLER = """
import os
import time

def handle(event, context):
    if "raise" in event:
        raise ValueError(os.getpid())
    if "endless" in event:
        while True:
            time.sleep(1)
    if "mib" in event:
        held = b"x" * (event["mib"] * 1024 * 1024)
        if not event.get("released"):
            time.sleep(60)
        return len(held)
    if "answer" in event:
        return "x" * event["answer"]
    return len(event.get("text", ""))
"""


@pytest.fixture(scope="module")
def create(empty_cloud):
    """Create a function of HANDLER with a name and settings; return its name."""
    role = create_unlimited_role(empty_cloud.client("iam"), "function-limits")
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("handler.py", HANDLER)

    def create_function(name, **settings):
        request = {"Runtime": "python3.13", "Handler": "handler.handle", "Role": role, **settings}
        empty_cloud.client("lambda").create_function(FunctionName=name, Code={"ZipFile": package.getvalue()}, **request)
        return name

    return create_function


@pytest.fixture(scope="module")
def invoke(empty_cloud, create):
    """Invoke the function ``limited`` of 128 MiB and 30 seconds, or the one that is named."""
    create("limited", MemorySize=128, Timeout=30)

    def call(event, name="limited", **options):
        answer = empty_cloud.client("lambda").invoke(FunctionName=name, Payload=json.dumps(event), **options)
        return json.loads(answer["Payload"].read() or "null")

    return call


def test_synchronous_request_has_at_most_6_mib(invoke):
    room = MAX_REQUEST_BYTES - len(json.dumps({"text": ""}))
    assert invoke({"text": "x" * room}) == room
    with pytest.raises(ClientError, match="RequestEntityTooLargeException"):
        invoke({"text": "x" * (room + 1)})


def test_asynchronous_request_has_at_most_1_mib(invoke):
    room = 1_048_576 - len(json.dumps({"text": ""}))
    assert invoke({"text": "x" * room}, InvocationType="Event") is None
    with pytest.raises(ClientError, match="RequestEntityTooLargeException"):
        invoke({"text": "x" * (room + 1)}, InvocationType="Event")


def test_response_has_at_most_6_mib(invoke):
    assert len(invoke({"answer": MAX_RESPONSE_BYTES - 2})) == MAX_RESPONSE_BYTES - 2
    assert invoke({"answer": MAX_RESPONSE_BYTES - 1})["errorType"] == "Function.ResponseSizeTooLarge"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell a process's memory")
def test_function_with_too_much_memory_is_killed_and_the_next_invocation_runs(invoke):
    # When a function of 128 MiB holds 160 MiB, then it is killed
    error = invoke({"mib": 160})
    assert error["errorType"] == "Runtime.OutOfMemory"
    assert "signal: killed" in error["errorMessage"]
    # When it is invoked again, then it has a new process
    assert invoke({"mib": 16, "released": True}) == 16 * 1024 * 1024


def test_function_that_takes_too_long_is_killed(create, invoke):
    create("hurried", Timeout=1)
    error = invoke({"endless": True}, "hurried")
    assert error == {"errorType": "Sandbox.Timedout", "errorMessage": "Task timed out after 1.00 seconds"}


def test_function_that_raises_keeps_its_process(create, invoke):
    create("raising")
    first, second = (invoke({"raise": True}, "raising") for _ in range(2))
    assert first["errorType"] == second["errorType"] == "ValueError"
    assert first["errorMessage"] == second["errorMessage"]


def test_environment_has_at_most_4_kib(empty_cloud, create):
    room = 4096 - len(json.dumps({"TEXT": ""}, separators=(",", ":")))
    create("full", Environment={"Variables": {"TEXT": "x" * room}})
    too_much = {"Variables": {"TEXT": "x" * (room + 1)}}
    with pytest.raises(ClientError, match="exceeded the 4KB limit"):
        create("fuller", Environment=too_much)
    with pytest.raises(ClientError, match="exceeded the 4KB limit"):
        empty_cloud.client("lambda").update_function_configuration(FunctionName="full", Environment=too_much)


def test_deployment_of_a_function_with_too_much_environment_fails(empty_cloud):
    properties = {
        "Runtime": "python3.13",
        "Handler": "index.handler",
        "Role": "arn:aws:iam::111122223333:role/function-limits",
        "Code": {"ZipFile": "def handler(event, context): pass"},
        "Environment": {"Variables": {"TEXT": "x" * 4096}},
    }
    template = {"Resources": {"Function": {"Type": "AWS::Lambda::Function", "Properties": properties}}}
    stacks = empty_cloud.client("cloudformation")
    stacks.create_stack(StackName="crowded", TemplateBody=json.dumps(template))

    def reasons():
        events = stacks.describe_stack_events(StackName="crowded")["StackEvents"]
        return [reason for event in events if "4KB limit" in (reason := event.get("ResourceStatusReason", ""))]

    wait_for("the failure of the stack", reasons)
