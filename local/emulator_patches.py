"""Every place where the emulator (ministack) is changed, because it would otherwise be kinder than AWS or do nothing.

All patch points are private names of one exact version; tests/e2e/local/test_emulator_contract.py fails when a new
version changes what is relied on here. The functions keep the emulator's own signatures.
"""

from __future__ import annotations

import contextvars
import json
import sys
import threading
import time
from datetime import UTC, datetime
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from ministack.core import lambda_runtime  # type: ignore[import-untyped]
from ministack.services import (  # type: ignore[import-untyped]
    eventbridge,
    glue,
    lambda_svc,
    scheduler,
    stepfunctions,
)
from ministack.services.cloudformation import provisioners  # type: ignore[import-untyped]

from local.errors import ConcurrentRunsExceededError, LocalCloudError
from local.glue_runs import LIVE_STATES, SUCCEEDED, GlueRuns, find_run

if TYPE_CHECKING:
    from collections.abc import Mapping

# The emulator is untyped; its records and responses are passed through as they are.
Foreign = Any

PINNED_VERSION = "1.5.33"
_POLL_SECONDS = 0.1
_SCHEDULE_TICK_SECONDS = 1
# What AWS's Python runtime offers beside the function's own asset.
_LAMBDA_PACKAGES = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six", "urllib3")

_execution: contextvars.ContextVar[Mapping[str, Any] | None] = contextvars.ContextVar("execution", default=None)
_abandoned: contextvars.ContextVar[threading.Event | None] = contextvars.ContextVar("abandoned", default=None)
_error_type: contextvars.ContextVar[str | None] = contextvars.ContextVar("error_type", default=None)


def install(runs: GlueRuns, *, lambda_logs: Path, runtime_dir: Path) -> None:
    """Patch the imported emulator, before it serves.

    Raises
    ------
    LocalCloudError
        Another version of the emulator is installed, or a patch point has changed.
    """
    version = metadata.version("ministack")
    if version != PINNED_VERSION:
        raise LocalCloudError(f"ministack {version} is installed, {PINNED_VERSION} is needed: run uv sync.")
    _patch_glue(runs)
    _patch_glue_in_states(runs)
    _patch_abort_and_timeout()
    _patch_distributed_map()
    _patch_lambda_isolation(runtime_dir)
    _patch_lambda_error_type()
    _patch_lambda_logs(lambda_logs)
    _patch_scheduler()


def _patch_glue(runs: GlueRuns) -> None:
    """StartJobRun and BatchStopJobRun act on real processes; MaxConcurrentRuns counts, through CloudFormation too."""
    create, update, fields = glue._create_job, glue._update_job, provisioners._glue_job_fields

    def keep_limits(name: str, given: Mapping[str, Any]) -> None:
        job = glue._jobs[name]
        job.setdefault("ExecutionProperty", {"MaxConcurrentRuns": 1})
        if given.get("ExecutionProperty"):
            job["ExecutionProperty"] = {"MaxConcurrentRuns": int(given["ExecutionProperty"]["MaxConcurrentRuns"])}
        job.pop("Timeout", None)
        if given.get("Timeout"):
            job["Timeout"] = int(given["Timeout"])
        if given.get("ExecutionClass"):
            job["ExecutionClass"] = given["ExecutionClass"]

    def create_job(data: dict[str, Any]) -> Foreign:
        response = create(data)
        if response[0] == 200:
            keep_limits(data["Name"], data)
        return response

    def update_job(data: dict[str, Any]) -> Foreign:
        response = update(data)
        if response[0] == 200:
            keep_limits(data["JobName"], data.get("JobUpdate", {}))
        return response

    def job_fields(properties: dict[str, Any]) -> dict[str, Any]:
        extra = {key: properties[key] for key in ("ExecutionProperty", "ExecutionClass") if key in properties}
        return {**fields(properties), **extra}

    def start_job_run(data: dict[str, Any]) -> Foreign:
        name = data.get("JobName")
        if name not in glue._jobs:
            return glue.error_response_json("EntityNotFoundException", f"Job {name} not found", 400)
        try:
            run = runs.start(glue._jobs[name], data, glue._job_runs[name])
        except ConcurrentRunsExceededError as error:
            return glue.error_response_json("ConcurrentRunsExceededException", str(error), 400)
        return glue.json_response({"JobRunId": run["Id"]})

    def batch_stop_job_run(data: dict[str, Any]) -> Foreign:
        name, stopped, errors = data.get("JobName"), [], []
        for run_id in data.get("JobRunIds", []):
            run = find_run(glue._job_runs.get(name, []), run_id)
            entry = {"JobName": name, "JobRunId": run_id}
            if run is not None and runs.stop(run):
                stopped.append(entry)
                continue
            code = "EntityNotFoundException" if run is None else "InvalidInputException"
            errors.append({**entry, "ErrorDetail": {"ErrorCode": code, "ErrorMessage": "The run cannot be stopped."}})
        return glue.json_response({"SuccessfulSubmissions": stopped, "Errors": errors})

    glue._create_job, glue._update_job, provisioners._glue_job_fields = create_job, update_job, job_fields
    glue._start_job_run, glue._batch_stop_job_run = start_job_run, batch_stop_job_run


def _patch_glue_in_states(runs: GlueRuns) -> None:
    """The integration ``glue:startJobRun``, with and without ``.sync``; the emulator has none."""

    def start_job_run(resource: str, data: dict[str, Any]) -> dict[str, Any]:
        status, _, body = glue._start_job_run(data)
        answer: dict[str, Any] = json.loads(body)
        if status >= 400:
            name = str(answer.get("__type", "GlueException")).rpartition("#")[2]
            raise stepfunctions._ExecutionError(f"Glue.{name}", answer.get("message") or answer.get("Message", ""))
        answer["JobName"] = data["JobName"]
        if not resource.endswith(".sync"):
            return answer
        run = find_run(glue._job_runs[data["JobName"]], answer["JobRunId"])
        assert run is not None
        while run["JobRunState"] in LIVE_STATES:
            if _given_up():
                runs.stop(run)
            time.sleep(_POLL_SECONDS)
        if run["JobRunState"] != SUCCEEDED:
            raise stepfunctions._ExecutionError("States.TaskFailed", json.dumps(run))
        return dict(run)

    stepfunctions._SERVICE_DISPATCH["arn:aws:states:::glue:startJobRun"] = start_job_run


def _given_up() -> bool:
    """Whether the state that this thread works for was aborted with its execution, or has timed out."""
    abandoned = _abandoned.get()
    return _aborted(_execution.get()) or (abandoned is not None and abandoned.is_set())


def _aborted(execution: Mapping[str, Any] | None) -> bool:
    while execution is not None:
        if execution.get("status") == "ABORTED":
            return True
        map_run = stepfunctions._map_runs.get(execution.get("mapRunArn") or "")
        execution = stepfunctions._executions.get(map_run["executionArn"]) if map_run else None
    return False


def _patch_abort_and_timeout() -> None:
    """StopExecution and a task's TimeoutSeconds end the Glue run, as AWS does, and no further task is started."""
    task, with_timeout = stepfunctions._execute_task, stepfunctions._invoke_resource_with_timeout

    def execute_task(state: Foreign, raw_input: Foreign, execution: Foreign, context: Foreign) -> Foreign:
        if _aborted(execution):
            raise stepfunctions._ExecutionError("States.Aborted", "The execution was stopped.")
        token = _execution.set(execution)
        try:
            return task(state, raw_input, execution, context)
        finally:
            _execution.reset(token)

    def invoke_with_timeout(resource: str, data: Foreign, timeout: float) -> Foreign:
        abandoned = threading.Event()
        token = _abandoned.set(abandoned)
        try:
            return with_timeout(resource, data, timeout)
        except stepfunctions._ExecutionError as error:
            if error.error == "States.Timeout":
                abandoned.set()
            raise
        finally:
            _abandoned.reset(token)

    stepfunctions._execute_task = execute_task
    stepfunctions._invoke_resource_with_timeout = invoke_with_timeout


def _patch_distributed_map() -> None:
    """JSONata in a distributed Map: its reader, items, selector, limits, Output and Assign are evaluated."""
    original = stepfunctions._run_distributed_map
    ours = {"ItemReader", "Items", "ItemSelector", "Output", "Assign"}

    def run(
        state: Foreign, raw_input: Foreign, effective: Foreign, iterator: Foreign, execution: Foreign, context: Foreign
    ) -> Foreign:
        missing = {"ItemBatcher", "ResultWriter"} & set(state)
        if missing:
            raise stepfunctions._ExecutionError("States.Runtime", f"The local cloud has no {' and no '.join(missing)}.")
        if stepfunctions._state_query_language(state, context) != "JSONata":
            return original(state, raw_input, effective, iterator, execution, context)

        def evaluated(value: Foreign, in_context: Foreign = context) -> Foreign:
            return stepfunctions._apply_jsonata_template(value, raw_input, in_context)

        if "ItemReader" in state:
            items = stepfunctions._read_map_items(evaluated(state["ItemReader"]), raw_input, context)
        else:
            items = evaluated(state["Items"]) if "Items" in state else raw_input
        inputs = [
            evaluated(state["ItemSelector"], {**context, "Map": {"Item": {"Index": index, "Value": item}}})
            if "ItemSelector" in state
            else item
            for index, item in enumerate(items)
        ]
        limits = ("MaxConcurrency", "ToleratedFailurePercentage", "ToleratedFailureCount")
        inner = {key: value for key, value in state.items() if key not in ours}
        inner |= {key: evaluated(state[key]) for key in limits if key in state}
        # On AWS a child cannot see the variables of the execution that started it.
        results, following = original(inner, raw_input, inputs, iterator, execution, {**context, "variables": {}})
        output = stepfunctions._apply_jsonata_output(state, raw_input, context, result=results, default=results)
        stepfunctions._apply_state_assign(state, raw_input, context, result=results)
        return output, following

    stepfunctions._run_distributed_map = run


def _patch_lambda_isolation(runtime_dir: Path) -> None:
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
        raise LocalCloudError("The emulator's Lambda worker has changed: local/emulator_patches.py must follow it.")
    script = preamble + lambda_runtime._PYTHON_WORKER_SCRIPT.replace(known, typed)
    detect = lambda_runtime._detect_runtime_binary

    def detect_runtime_binary(runtime: str) -> tuple[str, str]:
        return (sys.executable, script) if runtime.startswith("python") else detect(runtime)

    lambda_runtime._detect_runtime_binary = detect_runtime_binary


def _patch_lambda_error_type() -> None:
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


def _patch_lambda_logs(folder: Path) -> None:
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


class _ZonedExpression(str):
    zone: ZoneInfo


class _ZonedFields(tuple[Any, ...]):
    zone: ZoneInfo


def _patch_scheduler() -> None:
    """Schedules follow their ScheduleExpressionTimezone; a time in the missing spring hour is skipped."""
    tick, at, parse, following = (
        scheduler._tick_schedules,
        scheduler._at_time_epoch,
        eventbridge._parse_cron_fields,
        eventbridge._cron_next_fire,
    )

    def tick_schedules() -> None:
        for schedule in list(scheduler._schedules._data.values()):
            expression = _ZonedExpression(schedule["ScheduleExpression"])
            expression.zone = ZoneInfo(schedule.get("ScheduleExpressionTimezone") or "UTC")
            schedule["ScheduleExpression"] = expression
        tick()

    def at_time_epoch(expression: str) -> float | None:
        epoch: float | None = at(expression)
        if epoch is None or not isinstance(expression, _ZonedExpression):
            return epoch
        return datetime.fromtimestamp(epoch, UTC).replace(tzinfo=expression.zone).timestamp()

    def parse_cron_fields(expression: str) -> Foreign:
        fields = parse(expression)
        if fields is None or not isinstance(expression, _ZonedExpression):
            return fields
        zoned = _ZonedFields(fields)
        zoned.zone = expression.zone
        return zoned

    def cron_next_fire(fields: Foreign, after: datetime) -> datetime | None:
        zone = fields.zone if isinstance(fields, _ZonedFields) else UTC
        local: datetime | None = after.astimezone(zone)
        while True:
            local = following(fields, local)
            if local is None or local.astimezone(UTC).astimezone(zone).hour == local.hour:
                return local

    scheduler._tick_schedules, scheduler._at_time_epoch = tick_schedules, at_time_epoch
    eventbridge._parse_cron_fields, eventbridge._cron_next_fire = parse_cron_fields, cron_next_fire
    scheduler._SCHEDULE_TICK_INTERVAL = _SCHEDULE_TICK_SECONDS
