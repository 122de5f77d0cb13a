"""``quotas``: compares the account's quotas with what a stage needs; works before the first deployment."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import typer

from cli.errors import ExitCode
from infra.quotas import NeededQuota, needed_quotas
from lake.settings import Settings
from router.plan.glue_room import read_quota


def print_quotas(settings: Settings, service_quotas: Any, *, as_json: bool = False) -> int:  # noqa: ANN401
    """Print a line for each quota, or one JSON document; returns 1 if one is too low or cannot be read, else 0.

    ``service_quotas`` is a client of that service, in the region of the stage.
    """
    found = []
    for quota in needed_quotas(settings):
        value = read_quota(service_quotas, quota.service, quota.code)
        state = "unknown" if value is None else "too low" if value < quota.needed else "enough"
        found.append({"state": state, "value": value, **asdict(quota)})
        if not as_json:
            _print_quota(quota, value, state)
    if as_json:
        typer.echo(json.dumps({"quotas": found}, indent=1))
    return ExitCode.FINE if all(item["state"] == "enough" for item in found) else ExitCode.NOT_SO


def _print_quota(quota: NeededQuota, value: float | None, state: str) -> None:
    where = f"needed {quota.needed}: {quota.service} {quota.code}, {quota.name}"
    if value is None:
        typer.echo(f"{state}  {where} ({quota.reason}); look it up in the console")
    elif state == "enough":
        typer.echo(f"{state}   {value:g}, {where}")
    else:
        typer.echo(f"{state}  {value:g}, {where} ({quota.reason}); {quota.without}")
        typer.echo(
            f"         raise it: aws service-quotas request-service-quota-increase --service-code {quota.service} "
            f"--quota-code {quota.code} --desired-value {quota.needed}"
        )
