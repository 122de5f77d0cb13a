"""``quotas``: compares the account's quotas with what a stage needs; works before the first deployment."""

from __future__ import annotations

from typing import Any

import typer

from cli.exit_codes import ExitCode
from infra.quotas import needed_quotas
from lake.settings import Settings
from router.plan.glue_room import read_quota


def print_quotas(settings: Settings, service_quotas: Any) -> int:  # noqa: ANN401
    """Print a line for each quota; returns 1 if one is too low or cannot be read, else 0.

    ``service_quotas`` is a client of that service, in the region of the stage.

    Raises
    ------
    ClientError
        A request was refused.
    """
    code = ExitCode.FINE
    for quota in needed_quotas(settings):
        value = read_quota(service_quotas, quota.service, quota.code)
        where = f"{quota.service} {quota.code}, {quota.name}"
        if value is None:
            typer.echo(f"unknown  needed {quota.needed}: {where} ({quota.reason}); look it up in the console")
            code = ExitCode.NOT_SO
        elif value < quota.needed:
            typer.echo(f"too low  {value:g}, needed {quota.needed}: {where} ({quota.reason}); {quota.without}")
            typer.echo(
                f"         raise it: aws service-quotas request-service-quota-increase --service-code {quota.service} "
                f"--quota-code {quota.code} --desired-value {quota.needed}"
            )
            code = ExitCode.NOT_SO
        else:
            typer.echo(f"enough   {value:g}, needed {quota.needed}: {where}")
    return code
