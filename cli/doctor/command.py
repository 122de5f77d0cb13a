"""Prints the doctor's findings, and makes an exit code of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

import boto3
import typer

from cli.doctor.account import Account
from cli.doctor.finding import Finding, Readiness
from cli.doctor.machine import examine_machine
from cli.exit_codes import ExitCode
from lake.errors import InvalidInputError, InvalidSettingsError
from lake.settings import Settings, load_settings
from lake.texts import printable

CHECKOUT = Path(__file__).parents[2]
"""The folder of the packages; of an installed command it is not a checkout."""
WIDTHS = (14, 14)
"""Columns of name and state."""


def examine(settings_file: Path, stage: str, profile: str | None, region: str | None) -> Iterator[Finding]:
    """Every line, in the order in which a person repairs them."""
    settings: Settings | None = None
    try:
        settings = load_settings(settings_file)
        found = Finding("settings", Readiness.OK, f"{settings_file} is valid")
        if settings.stage != stage:
            text = f"{settings_file} is of the stage {settings.stage}: pass --stage {settings.stage}, or another file"
            found = Finding("settings", Readiness.TO_DO, text)
    except InvalidSettingsError as error:
        found = Finding("settings", Readiness.TO_DO, f"{error}; run 'hybrid-router settings check {settings_file}'")
    yield from examine_machine(CHECKOUT, settings)
    yield found
    if settings is not None and not settings.input.bucket and not settings.input.keep_days:
        text = "the input bucket keeps every file: decide on input.keep_days before the first terabyte (docs/deploy.md)"
        yield Finding("input", Readiness.OK, text)
    account = Account(lambda: boto3.Session(profile_name=profile, region_name=region), stage, CHECKOUT)
    yield from account.examine(settings)


def run_canary(
    settings_file: Path, stage: str, profile: str | None, region: str | None, *, local: bool, as_json: bool
) -> ExitCode:
    """Start each job of the deployed stage once. Raises ``InvalidInputError``: the settings are of another stage."""
    from cli.connect import connect_to_stage
    from cli.doctor.canary import print_canary

    settings = load_settings(settings_file)
    if settings.stage != stage:
        raise InvalidInputError(f"{settings_file} is of the stage {settings.stage}: pass --stage {settings.stage}")
    stack = connect_to_stage(stage, local=local, profile=profile, region=region)
    return print_canary(stack, settings, as_json=as_json)


def print_findings(findings: Iterable[Finding], *, as_json: bool) -> ExitCode:
    """Print each finding as soon as it is known, or one document; returns the exit code of all."""
    states = []
    document = []
    for finding in findings:
        states.append(finding.state)
        if as_json:
            document.append(asdict(finding))
        else:
            typer.echo(f"{finding.name:<{WIDTHS[0]}}{finding.state:<{WIDTHS[1]}} {printable(finding.text)}")
    if as_json:
        typer.echo(json.dumps({"findings": document}, indent=2))
    if Readiness.UNREACHABLE in states:
        return ExitCode.NOT_REACHABLE
    return ExitCode.NOT_SO if Readiness.TO_DO in states else ExitCode.FINE
