"""EMR Serverless, which the emulator lacks: applications by CloudFormation, job runs by its API and Step Functions."""

from __future__ import annotations

import json
import re
import time
import uuid
from typing import TYPE_CHECKING, Any

from ministack import app  # type: ignore[import-untyped]
from ministack.core import iam_actions, iam_evaluator, router  # type: ignore[import-untyped]
from ministack.services import stepfunctions  # type: ignore[import-untyped]
from ministack.services.cloudformation import provisioners  # type: ignore[import-untyped]

from lake.engines.emr_serverless import TERMINAL_STATES
from local.emr_runs import SUCCESS
from local.emulator_patches import state_machines
from local.errors import ServiceError
from local.isolation import ACCOUNT, REGION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from local.emr_runs import EmrRuns
    from local.emulator_patches import EmulatorValue

_SERVICE = "emr-serverless"
_PATH = re.compile(r"^/applications(?:/(?P<application>[0-9a-z]+)(?P<runs>/jobruns(?:/(?P<run>[0-9a-z]+))?)?)?/?$")
_STATUS = {
    "ValidationException": 400,
    "AccessDeniedException": 403,
    "ResourceNotFoundException": 404,
    "ConflictException": 409,
}
"""Amazon EMR Serverless API Reference, common to its actions."""

_applications: dict[str, dict[str, Any]] = {}


def patch(runs: EmrRuns) -> None:
    """Apply the patches of this file, after those of ``local.emulator_patches.state_machines``."""
    _patch_requests(runs)
    _patch_deployment()
    _patch_states(runs)


def _patch_requests(runs: EmrRuns) -> None:
    """The API: its requests find their service, the permission that they need, and an answer."""
    extract = iam_actions.extract_resource_arn

    def extract_resource_arn(service: str, method: str, path: str, *more: EmulatorValue) -> str:
        if service == _SERVICE:
            # Starting and listing are rights on the application (Service Authorization Reference, EMR Serverless).
            return f"arn:aws:emr-serverless:{REGION}:{ACCOUNT}:{path.rstrip('/').removesuffix('/jobruns')}"
        return str(extract(service, method, path, *more))

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

    router.SERVICE_PATTERNS[_SERVICE] = {"host_patterns": [r"emr-serverless\."], "credential_scope": _SERVICE}
    app.SERVICE_HANDLERS[_SERVICE] = handle
    iam_actions.SERVICE_TO_IAM_NAMESPACE[_SERVICE] = _SERVICE
    iam_actions._BOTOCORE_SERVICE_MAP[_SERVICE] = [_SERVICE]
    iam_actions.extract_resource_arn = extract_resource_arn


def _check_passed_role(access_key: str, request: Mapping[str, Any]) -> None:
    """Who starts a job run has to pass its role, which the emulator does not ask for."""
    role = request.get("executionRoleArn")
    if role is None:
        return
    passed = {"iam:passedtoservice": f"{_SERVICE}.amazonaws.com"}
    denied = iam_evaluator.enforce(access_key, "iam:PassRole", "iam", REGION, resource_arn=role, service_context=passed)
    if denied is not None:
        message = iam_actions.identity_denial_message("iam:PassRole", denied.principal_arn, role, False)
        raise ServiceError("AccessDeniedException", message)


def _answer(
    runs: EmrRuns, method: str, path: str, request: dict[str, Any], query: Mapping[str, list[str]]
) -> dict[str, Any]:
    asked = _PATH.match(path)
    if asked is None:
        raise ServiceError("ValidationException", f"The local cloud has no {method} {path} of EMR Serverless")
    if asked["application"] is None:
        return _create(request) if method == "POST" else {"applications": list(map(_summary, _applications.values()))}
    application = _application(asked["application"])
    if asked["runs"] is None:
        return {"application": application}
    if asked["run"] is None:
        return _start_or_list(runs, method, application, request, query)
    run = runs.find(application["applicationId"], asked["run"])
    if method == "DELETE":
        runs.cancel(run, int(query.get("shutdownGracePeriodInSeconds", ["0"])[0]))
        return {key: run[key] for key in ("applicationId", "jobRunId")}
    return {"jobRun": run}


def _create(request: dict[str, Any]) -> dict[str, Any]:
    application, attributes = _put(_new_id(), request.get("name", ""), request)
    return {"applicationId": application, "name": _applications[application]["name"], "arn": attributes["Arn"]}


def _start_or_list(
    runs: EmrRuns,
    method: str,
    application: Mapping[str, Any],
    request: dict[str, Any],
    query: Mapping[str, list[str]],
) -> dict[str, Any]:
    if method == "POST":
        run = runs.start(application, request)
        return {key: run[key] for key in ("applicationId", "jobRunId", "arn")}
    found = runs.of(application["applicationId"], query.get("states", ()), query.get("mode", [""])[0])
    return {"jobRuns": [{**run, "id": run["jobRunId"]} for run in found]}


def _application(application: str) -> dict[str, Any]:
    if application not in _applications:
        raise ServiceError("ResourceNotFoundException", f"Application {application} does not exist")
    return _applications[application]


def _summary(application: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("name", "arn", "releaseLabel", "type", "state", "createdAt", "updatedAt")
    return {"id": application["applicationId"], **{key: application[key] for key in keys}}


def _patch_deployment() -> None:
    """CloudFormation: AWS::EMRServerless::Application."""

    def create(logical_id: str, properties: dict[str, Any], _stack: str) -> EmulatorValue:
        return _put(_new_id(), logical_id, properties)

    def update(physical_id: str, _old: EmulatorValue, properties: dict[str, Any], _stack: str) -> EmulatorValue:
        return _put(physical_id, physical_id, properties)

    def delete(physical_id: str, _properties: EmulatorValue) -> None:
        _applications.pop(physical_id, None)

    provisioners._RESOURCE_HANDLERS["AWS::EMRServerless::Application"] = {
        "create": create,
        "update": update,
        "delete": delete,
    }


def _new_id() -> str:
    return f"00{uuid.uuid4().hex[:14]}"


def _put(application: str, name: str, properties: dict[str, Any]) -> EmulatorValue:
    now = time.time()
    arn = f"arn:aws:emr-serverless:{REGION}:{ACCOUNT}:/applications/{application}"
    own = {"applicationId": application, "arn": arn, "state": "STARTED", "createdAt": now, "updatedAt": now}
    _applications[application] = {"name": name, **_renamed(properties, str.lower), **own}
    return application, {"ApplicationId": application, "Arn": arn}


def _patch_states(runs: EmrRuns) -> None:
    """The integration ``emr-serverless:startJobRun``, with and without ``.sync``: keys begin with capital letters."""

    def start_job_run(resource: str, data: dict[str, Any]) -> dict[str, Any]:
        request = _renamed(data, str.lower)
        try:
            run = runs.start(_application(request.pop("applicationId")), request)
        except ServiceError as error:
            raise stepfunctions._ExecutionError(f"EMRServerless.{error.code}", str(error)) from None
        if resource.endswith(".sync"):
            while run["state"] not in TERMINAL_STATES:
                if state_machines.is_abandoned():
                    runs.cancel(run)
                time.sleep(state_machines.POLL_SECONDS)
            state_machines.check_not_stopped(state_machines.current_execution.get())
            if run["state"] != SUCCESS:
                raise stepfunctions._ExecutionError("States.TaskFailed", json.dumps(_renamed(run, str.upper)))
        answer: dict[str, Any] = _renamed(run, str.upper)
        return answer

    stepfunctions._SERVICE_DISPATCH["arn:aws:states:::emr-serverless:startJobRun"] = start_job_run


def _renamed(value: Any, change: EmulatorValue) -> Any:  # noqa: ANN401
    """The value with the first letter of every key changed; what is inside lists of the value stays."""
    if not isinstance(value, dict):
        return value
    return {change(key[:1]) + key[1:]: _renamed(item, change) for key, item in value.items()}
