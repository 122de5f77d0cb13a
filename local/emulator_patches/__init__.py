"""All changes to the emulator (ministack): without them it would be more permissive than AWS, or ignore a setting.

The patches replace private functions of one exact version and keep their signatures.
tests/e2e/local/test_emulator_contract.py fails if another version changes what they rely on.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from importlib import metadata
from pathlib import Path
from typing import Any

from local.errors import LocalCloudError
from local.limits import Limits

PINNED_VERSION = "1.5.33"

EmulatorValue = Any
"""A record, request or response of the emulator, which has no types."""
Original = Callable[..., Any]
"""The function of the emulator that a patch replaces."""


def wrap(owner: EmulatorValue, name: str, new: Callable[..., object]) -> None:
    """Replace a function of a module or class by ``new``, whose first argument is the replaced function."""
    original: Original = getattr(owner, name)

    @wraps(original)
    def wrapped(*args: EmulatorValue, **options: EmulatorValue) -> object:
        return new(original, *args, **options)

    setattr(owner, name, wrapped)


def wrap_handler(kind: str, change: str, new: Callable[..., object]) -> None:
    """Replace CloudFormation's handler of a change ("create", "update") of a resource, as in ``wrap``."""
    from ministack.services.cloudformation import provisioners  # type: ignore[import-untyped]  # noqa: PLC0415

    handlers = provisioners._RESOURCE_HANDLERS[kind]
    handlers[change] = partial(new, handlers[change])


def add_service(name: str, handle: Callable[..., object], arn_of: Callable[..., str], **patterns: object) -> None:
    """Add a service that the emulator lacks, with its name as its host and in the credentials of requests.

    ``arn_of`` returns the resource of a request, for the check of permissions. ``patterns``: other marks of requests.
    """
    from ministack import app  # type: ignore[import-untyped]  # noqa: PLC0415
    from ministack.core import iam_actions, router  # type: ignore[import-untyped]  # noqa: PLC0415

    def extract_resource_arn(original: Original, service: str, *request: EmulatorValue) -> EmulatorValue:
        return arn_of(*request) if service == name else original(service, *request)

    router.SERVICE_PATTERNS[name] = {"host_patterns": [rf"{name}\."], "credential_scope": name, **patterns}
    app.SERVICE_HANDLERS[name] = handle
    iam_actions.SERVICE_TO_IAM_NAMESPACE[name] = name
    wrap(iam_actions, "extract_resource_arn", extract_resource_arn)


@contextmanager
def setting(variable: ContextVar[Any], value: object) -> Iterator[None]:
    """Set a context variable while the block runs."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def install(
    engines: Iterable[Callable[[], object]], *, logs: Path, runtime_dir: Path, limits: Callable[[], Limits]
) -> None:
    """Apply all patches; call it before the emulator serves, and after its environment is set, which its import reads.

    ``engines``: each adds a service that has job runs. ``logs``: the folder for the functions' logs and for the record
    of used permissions. ``runtime_dir``: an existing, empty folder for the packages that functions may import.
    ``limits``: returns the account's limits whenever one is needed. Raises ``LocalCloudError`` if another version of
    the emulator is installed, or a patch point has changed.
    """
    version = metadata.version("ministack")
    if version != PINNED_VERSION:
        raise LocalCloudError(f"ministack {version} is installed, {PINNED_VERSION} is required: run `make setup`.")
    from local.emulator_patches import (  # noqa: PLC0415
        alarms,
        buckets,
        delivery_streams,
        index_lag,
        lambda_functions,
        schedules,
        service_quotas,
        state_machines,
    )
    from local.emulator_patches.identities import encryption_keys, requests, roles  # noqa: PLC0415

    state_machines.patch()
    for add in engines:
        add()
    lambda_functions.patch(logs / "lambda", runtime_dir)
    schedules.patch()
    buckets.patch()
    service_quotas.patch(limits)
    delivery_streams.patch()
    alarms.patch()
    index_lag.patch(lambda: limits().index_lag_seconds)
    # These come last, because they wrap what the others replace.
    requests.record_uses(logs / "permissions.jsonl")
    roles.patch()
    requests.patch()
    encryption_keys.patch()
