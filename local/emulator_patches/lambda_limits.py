"""Lambda: the size of a payload and of the environment, and the memory of a function."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ministack.core import lambda_runtime  # type: ignore[import-untyped]
from ministack.core.responses import error_response_json  # type: ignore[import-untyped]
from ministack.services import lambda_svc  # type: ignore[import-untyped]
from ministack.services.cloudformation import provisioners  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Mapping

    from local.emulator_patches import EmulatorValue

MAX_REQUEST_BYTES = 6_291_456
MAX_EVENT_BYTES = 1_048_576
MAX_RESPONSE_BYTES = 6_291_556
MAX_ENVIRONMENT_BYTES = 4_096
"""Bytes of a synchronous request, an asynchronous one, a response, and all variables as JSON.

Source: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html; the response's is in AWS's error.
"""

_SAMPLE_SECONDS = 0.05
_MIB = 1024 * 1024


def patch() -> None:
    """Apply the patches of this file, before those of ``lambda_functions``, which read the type of an error."""
    _patch_requests()
    _patch_responses()
    _patch_environment()
    _patch_memory()


def _patch_requests() -> None:
    invoke = lambda_svc._invoke

    async def checked_invoke(
        name: str, event: EmulatorValue, headers: Mapping[str, str], *args: EmulatorValue
    ) -> EmulatorValue:
        sent = {key.lower(): value for key, value in headers.items()}
        limit = MAX_EVENT_BYTES if sent.get("x-amz-invocation-type") == "Event" else MAX_REQUEST_BYTES
        if int(sent.get("content-length") or len(_json_of(event))) > limit:
            message = f"Request must be smaller than {limit} bytes for the InvokeFunction operation"
            return error_response_json("RequestEntityTooLargeException", message, 413)
        return await invoke(name, event, headers, *args)

    lambda_svc._invoke = checked_invoke


def _patch_responses() -> None:
    execute = lambda_svc._execute_function

    def execute_function(function: EmulatorValue, event: EmulatorValue) -> dict[str, Any]:
        result: dict[str, Any] = execute(function, event)
        if not result.get("error") and len(_json_of(result.get("body"))) > MAX_RESPONSE_BYTES:
            message = f"Response payload size exceeded maximum allowed payload size ({MAX_RESPONSE_BYTES} bytes)."
            body = {"errorType": "Function.ResponseSizeTooLarge", "errorMessage": message}
            return {**result, "body": body, "error": True}
        return result

    lambda_svc._execute_function = execute_function


def _json_of(value: EmulatorValue) -> bytes:
    """What the Python runtime sends for ``value``."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _patch_environment() -> None:
    create, update = lambda_svc._create_function, lambda_svc._update_config
    handlers = provisioners._RESOURCE_HANDLERS["AWS::Lambda::Function"]
    deploy = handlers["create"]

    def create_function(data: EmulatorValue) -> EmulatorValue:
        message = _too_much_environment(data)
        return lambda_svc._invalid_parameter_value(message) if message else create(data)

    def update_config(name: str, data: EmulatorValue) -> EmulatorValue:
        message = _too_much_environment(data)
        return lambda_svc._invalid_parameter_value(message) if message else update(name, data)

    def deploy_function(
        logical_id: str, properties: EmulatorValue, *args: EmulatorValue, **options: EmulatorValue
    ) -> EmulatorValue:
        message = _too_much_environment(properties)
        if message:
            raise ValueError(message)
        return deploy(logical_id, properties, *args, **options)

    lambda_svc._create_function, lambda_svc._update_config = create_function, update_config
    handlers["create"] = deploy_function


def _too_much_environment(properties: Mapping[str, Any]) -> str:
    """AWS's message if the variables take too much room, or an empty string."""
    variables = json.dumps((properties.get("Environment") or {}).get("Variables") or {}, separators=(",", ":"))
    if len(variables.encode()) <= MAX_ENVIRONMENT_BYTES:
        return ""
    return (
        "Lambda was unable to configure your environment variables because the environment variables you have "
        f"provided exceeded the 4KB limit. String measured: {variables}"
    )


def _patch_memory() -> None:
    """A function whose process is seen with more memory than MemorySize is killed, where the system has /proc."""
    invoke = lambda_runtime.Worker.invoke

    def worker_invoke(
        self: EmulatorValue, event: EmulatorValue, request_id: str, **options: EmulatorValue
    ) -> dict[str, Any]:
        ended, killed = threading.Event(), threading.Event()
        watch = threading.Thread(target=_kill_above_memory_size, args=(self, ended, killed), daemon=True)
        watch.start()
        try:
            result: dict[str, Any] = invoke(self, event, request_id, **options)
        finally:
            ended.set()
            watch.join()
        if killed.is_set() and result.get("status") != "ok":
            result["error_type"] = "Runtime.OutOfMemory"
            result["error"] = f"RequestId: {request_id} Error: Runtime exited with error: signal: killed"
        return result

    lambda_runtime.Worker.invoke = worker_invoke


def _kill_above_memory_size(worker: EmulatorValue, ended: threading.Event, killed: threading.Event) -> None:
    limit = worker.config.get("MemorySize", 128) * _MIB
    while not ended.wait(_SAMPLE_SECONDS):
        process = worker._proc
        if process is not None and _resident_bytes(process.pid) > limit:
            killed.set()
            process.kill()
            return


def _resident_bytes(pid: int) -> int:
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
