"""Lambda: imports and retries as on AWS, errors by the class of their exception, a log file for each function."""

import contextvars
import json
import sys
import threading
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

from ministack.core import lambda_runtime  # type: ignore[import-untyped]
from ministack.services import eventbridge, lambda_svc  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue
from local.errors import LocalCloudError

# The packages of AWS's Python runtime.
_RUNTIME_PACKAGES = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six", "urllib3")

_REPORT = '{"status": "error", "error": str(e), "trace"'
_PATCHED_REPORT = '{"status": "ok", "error": str(e), "error_type": type(e).__name__, "trace"'
"""What a worker writes about an exception of its handler. The emulator ends a worker whose status is "error"."""

_error_type: contextvars.ContextVar[str | None] = contextvars.ContextVar("error_type", default=None)


def patch(logs: Path, runtime_dir: Path) -> None:
    """Apply the patches of this file.

    Raises ``LocalCloudError``: a package of the Lambda runtime is missing here, or the emulator's worker has changed.
    """
    _patch_isolation(runtime_dir)
    _patch_error_type()
    _patch_retries()
    _patch_logs(logs)


def _patch_isolation(runtime_dir: Path) -> None:
    """A function can import its asset, the standard library and boto3, but no other package of this environment."""
    for package in _RUNTIME_PACKAGES:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise LocalCloudError(
                f"The package {package}, which Lambda functions can import, is missing: run `make setup`."
            )
        source = Path(spec.origin)
        source = source.parent if source.name == "__init__.py" else source
        (runtime_dir / source.name).symlink_to(source)
    library = [entry for entry in sys.path if entry.startswith(sys.base_prefix) and "-packages" not in entry]
    preamble = f"import sys\nsys.path[:] = {[*library, str(runtime_dir)]!r}\n"
    if lambda_runtime._PYTHON_WORKER_SCRIPT.count(_REPORT) != 1:
        raise LocalCloudError("The emulator's Lambda worker has changed: adapt local/emulator_patches to it.")
    script = preamble + lambda_runtime._PYTHON_WORKER_SCRIPT.replace(_REPORT, _PATCHED_REPORT)
    detect = lambda_runtime._detect_runtime_binary

    def detect_runtime_binary(runtime: str) -> tuple[str, str]:
        return (sys.executable, script) if runtime.startswith("python") else detect(runtime)

    lambda_runtime._detect_runtime_binary = detect_runtime_binary


def _patch_error_type() -> None:
    """A failed function's errorType is the class name of its exception, which Retry and Catch of state machines use.

    Its process takes the next event, as on AWS: there only a crash and a timeout reset an execution environment.
    Source: https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html.
    """
    invoke, execute = lambda_runtime.Worker.invoke, lambda_svc._execute_function_warm

    def worker_invoke(self: EmulatorValue, *args: EmulatorValue, **kwargs: EmulatorValue) -> EmulatorValue:
        result = invoke(self, *args, **kwargs)
        _error_type.set(result.get("error_type"))
        return {**result, "status": "error"} if "error" in result else result

    def execute_function_warm(func: EmulatorValue, event: EmulatorValue, request_id: str) -> EmulatorValue:
        _error_type.set(None)
        result = execute(func, event, request_id)
        if result.get("error") and (name := _error_type.get()):
            result["body"]["errorType"] = name
        return result

    lambda_runtime.Worker.invoke = worker_invoke
    lambda_svc._execute_function_warm = execute_function_warm


def _patch_retries() -> None:
    """A failed invocation by a schedule or a rule is repeated twice, or as often as the function's configuration says.

    Both invoke asynchronously (AWS Lambda Developer Guide, "Using Lambda with EventBridge Scheduler", "Asynchronous
    invocation"). Lambda waits one minute and then two; the emulator waits seconds.
    """

    def dispatch_to_lambda(arn: str, payload: str) -> None:
        func, config, _ = lambda_svc._get_func_record_for_ref(arn)
        if func and config:
            record = lambda_svc._execution_record_for_config(func, config)
            lambda_svc.invoke_async_with_retry(record, json.loads(payload))

    eventbridge._dispatch_to_lambda = dispatch_to_lambda


def _patch_logs(folder: Path) -> None:
    """A function's output is also written to ``folder/<function>.log``."""
    folder.mkdir(parents=True, exist_ok=True)
    emit = lambda_svc._emit_lambda_logs
    lock = threading.Lock()

    def emit_lambda_logs(
        func: EmulatorValue, request_id: str, log_text: str, error: bool, duration_ms: int, **options: EmulatorValue
    ) -> None:
        emit(func, request_id, log_text, error, duration_ms, **options)
        name = (func.get("config") or func).get("FunctionName", "unknown")
        line = f"{datetime.now(UTC):%H:%M:%S} {request_id} {'failed' if error else 'ok'} {duration_ms} ms\n"
        with lock, (folder / f"{name}.log").open("a") as log:
            log.write(line + (f"{log_text}\n" if log_text else ""))

    lambda_svc._emit_lambda_logs = emit_lambda_logs
