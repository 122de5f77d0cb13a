"""``quotas``: compares the account's quotas with what a stage needs; works before the first deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from infra.quotas import needed_quotas

if TYPE_CHECKING:
    from lake.settings import Settings

ENOUGH, TOO_LOW = 0, 1


def print_quotas(settings: Settings, service_quotas: Any) -> int:  # noqa: ANN401
    """Print a line for each quota; returns 1 if one is too low or cannot be read, else 0.

    ``service_quotas`` is a client of that service, in the region of the stage.

    Raises
    ------
    ClientError
        A request was refused.
    """
    code = ENOUGH
    for quota in needed_quotas(settings):
        value = read_quota(service_quotas, quota.service, quota.code)
        where = f"{quota.service} {quota.code}, {quota.name}"
        if value is None:
            typer.echo(f"unknown  needed {quota.needed}: {where} ({quota.reason}); look it up in the console")
            code = TOO_LOW
        elif value < quota.needed:
            typer.echo(f"too low  {value:g}, needed {quota.needed}: {where} ({quota.reason}); {quota.without}")
            typer.echo(
                f"         raise it: aws service-quotas request-service-quota-increase --service-code {quota.service} "
                f"--quota-code {quota.code} --desired-value {quota.needed}"
            )
            code = TOO_LOW
        else:
            typer.echo(f"enough   {value:g}, needed {quota.needed}: {where}")
    return code


def read_quota(service_quotas: Any, service: str, code: str) -> float | None:  # noqa: ANN401
    """The account's value, else AWS's default; None if the service lists no such quota here.

    Raises botocore's errors.
    """
    for request in (service_quotas.get_service_quota, service_quotas.get_aws_default_service_quota):
        try:
            value: float = request(ServiceCode=service, QuotaCode=code)["Quota"]["Value"]
        except service_quotas.exceptions.NoSuchResourceException:
            continue
        return value
    return None
