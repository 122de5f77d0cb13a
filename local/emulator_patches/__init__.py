"""All changes to the emulator (ministack): without them it would be more permissive than AWS, or ignore a setting.

The patches replace private functions of one exact version and keep their signatures.
``local.emulator_process`` applies them. tests/e2e/local/test_emulator_contract.py fails if another version changes what
they rely on.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from importlib import metadata
from typing import Any

from local.errors import LocalCloudError

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


def check_version() -> None:
    """Raise ``LocalCloudError`` if another version of the emulator is installed."""
    version = metadata.version("ministack")
    if version != PINNED_VERSION:
        raise LocalCloudError(f"ministack {version} is installed, {PINNED_VERSION} is required: run `make setup`.")
