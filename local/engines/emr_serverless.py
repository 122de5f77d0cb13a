"""EMR Serverless on this machine: applications by CloudFormation, job runs by its API and by Step Functions.

The emulator lacks the service. Each job run is a real process, with the service's states and ways to end. Capacity is
unlimited here, so no run waits in the queue of its application. A failed streaming run is not retried.
"""

import json
import re
import shlex
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from ministack.core import iam_actions, iam_evaluator, router  # type: ignore[import-untyped]
from ministack.services import stepfunctions  # type: ignore[import-untyped]
from ministack.services.cloudformation import provisioners  # type: ignore[import-untyped]

from lake.engines.description import Units
from lake.engines.emr_serverless import APPLICATION_VARIABLE, JOB_RUN_VARIABLE, SUCCESS, TERMINAL_STATES
from local.emulator_patches import EmulatorValue, add_service, state_machines
from local.emulator_patches.state_machines import Right, Rights
from local.errors import ServiceError
from local.isolation import ACCOUNT, REGION
from local.job_launch import JobLaunch, JobRuns

SERVICE = "emr-serverless"
PRINCIPAL = f"{SERVICE}.amazonaws.com"
PASSED = {"iam:passedtoservice": PRINCIPAL}
"""The condition key of iam:PassRole."""
EXECUTORS = "spark.dynamicAllocation.maxExecutors"
MODULES = "spark.submit.pyFiles"
NOT_ALLOWED = ("spark.master",)
"""According to reports of users, the service answers "Option 'spark.master' is not supported"."""
OF_THE_CLUSTER = (
    "spark.driver.",
    "spark.executor.",
    "spark.executorEnv.",
    "spark.dynamicAllocation.",
    "spark.emr-serverless.",
    "spark.submit.",
    "spark.archives",
)
"""Properties that describe a cluster; here a run is one process of Spark."""
WORKERS = {1: (2, 8, 1), 2: (4, 16, 1), 4: (8, 30, 1), 8: (16, 60, 4), 16: (32, 120, 8)}
"""vCPUs of a worker -> smallest and largest memory in GB, and the increment (Amazon EMR Serverless User Guide,
"Supported worker configurations")."""
DEFAULT_CORES, DEFAULT_MEMORY_GB, DEFAULT_EXECUTORS = 4, 14, 3
"""Amazon EMR Serverless User Guide, "Spark job properties"; its default number of executors has no upper limit."""
_DEFAULT_MINUTES = 720
"""Default of executionTimeoutMinutes; 0 means no limit (EMR Serverless API Reference, StartJobRun)."""
_MAX_MINUTES = 1_000_000
_STATES = {"SUCCEEDED": SUCCESS, "TIMEOUT": "CANCELLED"}
_MAX_DETAILS = 256
"""Characters of stateDetails (the same, JobRun)."""
_PATH = re.compile(r"^/applications(?:/(?P<application>[0-9a-z]+)(?P<runs>/jobruns(?:/(?P<run>[0-9a-z]+))?)?)?/?$")
_STATUS = {
    "ValidationException": 400,
    "AccessDeniedException": 403,
    "ResourceNotFoundException": 404,
    "ConflictException": 409,
}
"""Amazon EMR Serverless API Reference, common to its actions."""

_applications: dict[str, dict[str, Any]] = {}


class EmrRuns(JobRuns):
    """Starts, watches and ends job runs."""

    _id, _state, _stoppable, _stopping = "jobRunId", "state", ("SUBMITTED", "RUNNING"), "CANCELLING"

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **options)
        self._tokens: dict[tuple[str, str], tuple[Mapping[str, Any], dict[str, Any]]] = {}
        """Application and client token -> the request and its job run."""

    def start(self, application: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
        """Start a job run and return its record. A request with the client token of an earlier request finds its run.

        ``application`` and ``request`` are as in the service's API. Raises ``ServiceError``: ``ValidationException`` if
        the request is not valid, ``ConflictException`` if its client token belongs to another request.
        """
        needed = needed_capacity(spark_properties(request))
        token = (application["applicationId"], str(request.get("clientToken") or uuid.uuid4()))
        with self._lock:
            if token in self._tokens:
                known, run = self._tokens[token]
                if known != request:
                    raise ServiceError("ConflictException", f"The client token {token[1]} is that of another request")
                return run
            run = _new_record(application, request)
            self._tokens[token] = dict(request), run
            self._begin(run, partial(self._run, str(application["name"]), dict(request), run, needed))
        return run

    def find(self, application: str, job_run: str) -> dict[str, Any]:
        """Return the record of a job run; raises ``ServiceError``: ``ResourceNotFoundException``."""
        run = self._runs.get(job_run)
        if run is None or run["applicationId"] != application:
            raise ServiceError("ResourceNotFoundException", f"Job run {job_run} does not exist")
        return run

    def of(self, application: str, states: Collection[str] = (), mode: str = "") -> list[dict[str, Any]]:
        """Return the records of an application's job runs, the newest first; empty ``states`` and ``mode``: all."""
        return [
            run
            for run in reversed(list(self._runs.values()))
            if run["applicationId"] == application
            and run["state"] in (states or {run["state"]})
            and mode in ("", run["mode"])
        ]

    def _run(self, application: str, request: Mapping[str, Any], run: dict[str, Any], needed: Units) -> None:
        minutes = request.get("executionTimeoutMinutes", _DEFAULT_MINUTES) or _MAX_MINUTES
        state, details = self._execute(
            run,
            application,
            lambda: emr_launch(request, run),
            (str(request.get("executionRoleArn")), PRINCIPAL, run["jobRunId"]),
            minutes,
        )
        with self._lock:
            cancelled = run["state"] == "CANCELLING"
            run["stateDetails"] = "" if cancelled else details[:_MAX_DETAILS]
            run["endedAt"] = run["updatedAt"] = time.time()
            if "startedAt" in run:
                run |= _used(needed, run["endedAt"] - run["startedAt"])
            # Set last: a caller that sees a final state reads the other fields.
            run["state"] = "CANCELLED" if cancelled else _STATES.get(state, state)

    def _has_begun(self, record: dict[str, Any]) -> bool:
        record["startedAt"] = record["updatedAt"] = time.time()
        return super()._has_begun(record)


def spark_properties(request: Mapping[str, Any]) -> dict[str, str]:
    """Return the properties of a request's ``sparkSubmitParameters``.

    Raises ``ServiceError`` (``ValidationException``) for an option that the service, or the local cloud, does not
    support.
    """
    words = shlex.split(_spark_submit(request).get("sparkSubmitParameters", ""))
    properties = {}
    while words:
        option = words.pop(0)
        key, equals, value = (words.pop(0) if option == "--conf" and words else "").partition("=")
        if not equals or key in NOT_ALLOWED:
            raise ServiceError("ValidationException", f"Option '{key or option}' is not supported")
        properties[key] = value
    return properties


def needed_capacity(properties: Mapping[str, str]) -> Units:
    """Return what a run uses with all of its executors.

    Raises ``ServiceError`` (``ValidationException``) if there is no worker of this size.
    """
    executors = _worker(properties, "executor").times(int(properties.get(EXECUTORS, DEFAULT_EXECUTORS)))
    return _worker(properties, "driver") + executors


def emr_launch(request: Mapping[str, Any], run: Mapping[str, Any]) -> JobLaunch:
    properties = spark_properties(request)
    return JobLaunch(
        script=_spark_submit(request)["entryPoint"],
        modules=tuple(uri for uri in properties.get(MODULES, "").split(",") if uri),
        spark={key: value for key, value in properties.items() if not key.startswith(OF_THE_CLUSTER)},
        arguments=tuple(_spark_submit(request).get("entryPointArguments", ())),
        environment={JOB_RUN_VARIABLE: run["jobRunId"], APPLICATION_VARIABLE: run["applicationId"]},
    )


def _spark_submit(request: Mapping[str, Any]) -> Mapping[str, Any]:
    driver: Mapping[str, Any] = (request.get("jobDriver") or {}).get("sparkSubmit") or {}
    if not driver.get("entryPoint"):
        raise ServiceError("ValidationException", "jobDriver.sparkSubmit.entryPoint is missing")
    return driver


def _worker(properties: Mapping[str, str], part: str) -> Units:
    cores = int(properties.get(f"spark.{part}.cores", DEFAULT_CORES))
    sizes = [properties.get(f"spark.{part}.{name}", "0g").removesuffix("g") for name in ("memory", "memoryOverhead")]
    memory = sum(map(int, sizes)) or DEFAULT_MEMORY_GB
    smallest, largest, step = WORKERS.get(cores, (1, 0, 1))
    if not smallest <= memory <= largest or (memory - smallest) % step:
        message = f"There is no worker with {cores} vCPU and {memory} GB for the {part}"
        raise ServiceError("ValidationException", message)
    return Units(vcpu=cores, gb=memory)


def _new_record(application: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    now, job_run = time.time(), _new_id()
    return {
        "applicationId": application["applicationId"],
        "jobRunId": job_run,
        "arn": f"{application['arn']}/jobruns/{job_run}",
        "createdAt": now,
        "updatedAt": now,
        "state": "SUBMITTED",
        "stateDetails": "",
        "mode": request.get("mode", "BATCH"),
        **{key: request[key] for key in ("name", "jobDriver") if key in request},
    }


def _used(needed: Units, seconds: float) -> dict[str, Any]:
    """Return what a run is billed for: all of its workers, which one process replaces here, for its duration."""
    hours = seconds / 3600
    billed = {"vCPUHour": needed.vcpu * hours, "memoryGBHour": needed.gb * hours, "storageGBHour": 0.0}
    return {"totalExecutionDurationSeconds": int(seconds), "billedResourceUtilization": billed}


def patch(runs: EmrRuns) -> None:
    """Add the service: its routing, the permissions that its requests need, and its answers."""

    async def handle(
        method: str, path: str, headers: EmulatorValue, body: bytes, query: Mapping[str, list[str]]
    ) -> EmulatorValue:
        request = json.loads(body or b"{}")
        try:
            _check_passed_role(router.extract_access_key_id(headers, query), request)
            answer, status, added = _answer(runs, method, path, request, query), 200, {}
        except ServiceError as error:
            answer, status, added = {"message": str(error)}, _STATUS[error.code], {"x-amzn-errortype": error.code}
        return status, {"Content-Type": "application/json", **added}, json.dumps(answer).encode()

    add_service(SERVICE, handle, _arn_of)
    iam_actions._BOTOCORE_SERVICE_MAP[SERVICE] = [SERVICE]
    provisioners._RESOURCE_HANDLERS["AWS::EMRServerless::Application"] = {
        "create": lambda _name, properties, _stack: _put_application(_new_id(), properties),
        "update": lambda application, _old, properties, _stack: _put_application(application, properties),
        "delete": lambda application, _properties: _applications.pop(application, None),
    }
    state_machines.add_integration(f"{SERVICE}:startJobRun", partial(_start_job_run, runs), rights)


def _arn_of(_method: str, path: str, *_more: EmulatorValue) -> str:
    """ARN of a run or application. Starting and listing are rights on the latter (Service Authorization Reference)."""
    return f"arn:aws:{SERVICE}:{REGION}:{ACCOUNT}:{path.rstrip('/').removesuffix('/jobruns')}"


def _check_passed_role(access_key: str, request: Mapping[str, Any]) -> None:
    """The caller that starts a job run must pass its role, which the emulator does not check."""
    role = request.get("executionRoleArn")
    if role is None:
        return
    denied = iam_evaluator.enforce(access_key, "iam:PassRole", "iam", REGION, resource_arn=role, service_context=PASSED)
    if denied is not None:
        message = iam_actions.identity_denial_message("iam:PassRole", denied.principal_arn, role, False)
        raise ServiceError("AccessDeniedException", message)


def _answer(
    runs: EmrRuns, method: str, path: str, request: dict[str, Any], query: Mapping[str, list[str]]
) -> dict[str, Any]:
    asked = _PATH.match(path)
    if asked is None or (asked["runs"] is None and (asked["application"] or method != "GET")):
        raise ServiceError("ValidationException", f"The local cloud has no {method} {path} of EMR Serverless")
    if asked["application"] is None:
        return {"applications": [{"id": item["applicationId"], **item} for item in _applications.values()]}
    application = _application(asked["application"])
    name = application["applicationId"]
    if asked["run"] is None and method == "POST":
        run = runs.start(application, request)
        return {key: run[key] for key in ("applicationId", "jobRunId", "arn")}
    if asked["run"] is None:
        found = runs.of(name, query.get("states", ()), query.get("mode", [""])[0])
        return {"jobRuns": [{**run, "id": run["jobRunId"]} for run in found]}
    run = runs.find(name, asked["run"])
    if method == "DELETE":
        runs.stop(run)
        return {key: run[key] for key in ("applicationId", "jobRunId")}
    return {"jobRun": run}


def _application(application: str) -> dict[str, Any]:
    if application not in _applications:
        raise ServiceError("ResourceNotFoundException", f"Application {application} does not exist")
    return _applications[application]


def _put_application(application: str, properties: dict[str, Any]) -> EmulatorValue:
    now = time.time()
    arn = f"arn:aws:emr-serverless:{REGION}:{ACCOUNT}:/applications/{application}"
    own = {"applicationId": application, "arn": arn, "state": "STARTED", "createdAt": now, "updatedAt": now}
    _applications[application] = {**_renamed(properties, str.lower), **own}
    return application, {"ApplicationId": application, "Arn": arn}


def _new_id() -> str:
    return f"00{uuid.uuid4().hex[:14]}"


def _start_job_run(runs: EmrRuns, resource: str, data: dict[str, Any]) -> dict[str, Any]:
    """The integration of Step Functions, with and without ``.sync``: keys begin with capital letters."""
    request = _renamed(data, str.lower)
    try:
        run = runs.start(_application(request.pop("applicationId")), request)
    except ServiceError as error:
        raise stepfunctions._ExecutionError(f"EMRServerless.{error.code}", str(error)) from None
    if resource.endswith(".sync"):
        state_machines.wait_for_end(lambda: run["state"] in TERMINAL_STATES, lambda: runs.stop(run))
        if run["state"] != SUCCESS:
            raise stepfunctions._ExecutionError("States.TaskFailed", json.dumps(_renamed(run, str.upper)))
    answer: dict[str, Any] = _renamed(run, str.upper)
    return answer


def rights(resource: str, data: dict[str, Any]) -> Rights:
    """Rights that a task of a state machine needs to start a job run."""
    arn = f"arn:aws:{SERVICE}:{REGION}:{ACCOUNT}:/applications/{data['ApplicationId']}"
    asked = [Right(f"{SERVICE}:StartJobRun", arn), Right("iam:PassRole", data["ExecutionRoleArn"], PASSED)]
    if resource.endswith(".sync"):
        asked += [Right(f"{SERVICE}:{name}", f"{arn}/jobruns/any") for name in ("GetJobRun", "CancelJobRun")]
        asked += state_machines.use_of_rule("EMRServerlessJob")
    return "EMRServerless.AccessDeniedException", asked


def _renamed(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401
    """Return the value with the first letter of every key changed; the content of lists is unchanged."""
    if not isinstance(value, dict):
        return value
    return {change(key[:1]) + key[1:]: _renamed(item, change) for key, item in value.items()}
