"""Lambda: imports as on AWS, errors by the class of their exception, a log file for each function."""

import sys
import threading
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from ministack.core import lambda_runtime  # type: ignore[import-untyped]
from ministack.services import lambda_svc  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue, Original, wrap

# The packages of AWS's Python runtime.
_RUNTIME_PACKAGES = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six", "urllib3")

_TRACE = "raised by the handler"
_REPORT = '{"status": "error", "error": str(e), "trace": traceback.format_exc()}'
_ANSWER = '{"errorMessage": str(e), "errorType": type(e).__name__, "%s": traceback.format_exc()}' % _TRACE  # noqa: UP031
_PATCHED_REPORT = f'{{"status": "ok", "result": {_ANSWER}}}'
"""A worker's report of its handler's exception. The emulator ends a worker whose status is "error"."""
_log_lock = threading.Lock()


def patch(logs: Path, runtime_dir: Path) -> None:
    """Apply the patches of this file. ``logs``: the folder for the functions' logs."""
    logs.mkdir(parents=True, exist_ok=True)
    _patch_worker(runtime_dir)
    wrap(lambda_svc, "_execute_function_warm", _execute_function_warm)
    wrap(lambda_svc, "_emit_lambda_logs", partial(_emit_lambda_logs, logs))


def _patch_worker(runtime_dir: Path) -> None:
    """A function can import its asset, the standard library and boto3, but no other package of this environment."""
    for package in _RUNTIME_PACKAGES:
        spec = find_spec(package)
        assert spec is not None
        source = Path(str(spec.origin))
        source = source.parent if source.name == "__init__.py" else source
        (runtime_dir / source.name).symlink_to(source)
    library = [entry for entry in sys.path if entry.startswith(sys.base_prefix) and "-packages" not in entry]
    preamble = f"import sys\nsys.path[:] = {[*library, str(runtime_dir)]!r}\n"
    script = lambda_runtime._PYTHON_WORKER_SCRIPT.replace(_REPORT, _PATCHED_REPORT)
    lambda_runtime._PYTHON_WORKER_SCRIPT = preamble + script


def _execute_function_warm(original: Original, *invocation: EmulatorValue) -> EmulatorValue:
    """A failed function's errorType is the class name of its exception, which Retry and Catch of state machines use.

    Its process takes the next event, as on AWS: there only a crash and a timeout reset an execution environment.
    Source: https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html.
    """
    result = original(*invocation)
    body = result.get("body")
    if not isinstance(body, dict) or _TRACE not in body:
        return result
    trace = body.pop(_TRACE)
    return {"body": body, "error": True, "log": f"{result['log']}\n{trace}".strip()}


def _emit_lambda_logs(folder: Path, original: Original, *log: EmulatorValue, **options: EmulatorValue) -> None:
    """A function's output is also written to ``folder/<function>.log``."""
    original(*log, **options)
    func, request_id, log_text, error, duration_ms = log
    name = (func.get("config") or func).get("FunctionName", "unknown")
    line = f"{datetime.now(UTC):%H:%M:%S} {request_id} {'failed' if error else 'ok'} {duration_ms} ms\n"
    with _log_lock, (folder / f"{name}.log").open("a") as file:
        file.write(line + (f"{log_text}\n" if log_text else ""))
