"""Lambda: functions see what AWS gives them and nothing else, fail by their exception's name, and leave a log."""

from __future__ import annotations

import contextvars
import sys
import threading
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ministack.core import lambda_runtime  # type: ignore[import-untyped]
from ministack.services import lambda_svc  # type: ignore[import-untyped]

from local.errors import LocalCloudError

# The emulator is untyped; its records and responses are passed through as they are.
Foreign = Any
# What AWS's Python runtime offers beside the function's own asset.
_LAMBDA_PACKAGES = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six", "urllib3")

_error_type: contextvars.ContextVar[str | None] = contextvars.ContextVar("error_type", default=None)


def patch(logs: Path, runtime_dir: Path) -> None:
    """Apply all patches of this file; ``runtime_dir`` is an empty folder for the packages that functions may import."""
    _patch_isolation(runtime_dir)
    _patch_error_type()
    _patch_logs(logs)


def _patch_isolation(runtime_dir: Path) -> None:
    """A Lambda function sees its asset, the standard library and boto3, never this environment's other packages."""
    for package in _LAMBDA_PACKAGES:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise LocalCloudError(f"The package {package}, which Lambda functions may import, is missing: run uv sync.")
        source = Path(spec.origin)
        source = source.parent if source.name == "__init__.py" else source
        (runtime_dir / source.name).symlink_to(source)
    library = [entry for entry in sys.path if entry.startswith(sys.base_prefix) and "-packages" not in entry]
    preamble = f"import sys\nsys.path[:] = {[*library, str(runtime_dir)]!r}\n"
    known, typed = '"error": str(e), "trace"', '"error": str(e), "error_type": type(e).__name__, "trace"'
    if lambda_runtime._PYTHON_WORKER_SCRIPT.count(known) != 1:
        raise LocalCloudError("The emulator's Lambda worker has changed: local/emulator_patches must follow it.")
    script = preamble + lambda_runtime._PYTHON_WORKER_SCRIPT.replace(known, typed)
    detect = lambda_runtime._detect_runtime_binary

    def detect_runtime_binary(runtime: str) -> tuple[str, str]:
        return (sys.executable, script) if runtime.startswith("python") else detect(runtime)

    lambda_runtime._detect_runtime_binary = detect_runtime_binary


def _patch_error_type() -> None:
    """A failed function's errorType is its exception's class name: Retry and Catch of the state machines name it."""
    invoke, execute = lambda_runtime.Worker.invoke, lambda_svc._execute_function_warm

    def worker_invoke(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
        result = invoke(self, *args, **kwargs)
        _error_type.set(result.get("error_type"))
        return result

    def execute_function_warm(func: Foreign, event: Foreign, request_id: str) -> Foreign:
        _error_type.set(None)
        result = execute(func, event, request_id)
        if result.get("error") and (name := _error_type.get()):
            result["body"]["errorType"] = name
        return result

    lambda_runtime.Worker.invoke = worker_invoke
    lambda_svc._execute_function_warm = execute_function_warm


def _patch_logs(folder: Path) -> None:
    """What a function prints is also in ``folder/<function>.log``."""
    folder.mkdir(parents=True, exist_ok=True)
    emit = lambda_svc._emit_lambda_logs
    lock = threading.Lock()

    def emit_lambda_logs(
        func: Foreign, request_id: str, log_text: str, error: bool, duration_ms: int, **more: Foreign
    ) -> None:
        emit(func, request_id, log_text, error, duration_ms, **more)
        name = (func.get("config") or func).get("FunctionName", "unknown")
        line = f"{datetime.now(UTC):%H:%M:%S} {request_id} {'failed' if error else 'ok'} {duration_ms} ms\n"
        with lock, (folder / f"{name}.log").open("a") as log:
            log.write(line + (f"{log_text}\n" if log_text else ""))

    lambda_svc._emit_lambda_logs = emit_lambda_logs
