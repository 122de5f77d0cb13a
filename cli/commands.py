"""The module of each command, the options that several commands share, and how typer calls a command.

The function of ``tables status`` is ``tables_status_command``: its parameters and docstring are what ``--help`` shows.
It returns an ``Answer``, which adds the option ``--json``, or an exit code. The fields of a dataclass among its
parameters, such as ``Place``, are options. A parameter ``stack`` is the stack at a ``Place``; the options of this place
are added to the commands that error messages advise. A module is imported when one of its commands is called or shown.
Calls of AWS raise errors of botocore. If a command raises an error, ``cli.errors`` ends it with an exit code by the
error's type.
"""

import inspect
import os
import re
import shlex
from collections import UserDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from cli.errors import ExitCode
from lake.documents import format_json
from lake.errors import HybridRouterError

MODULES = {
    "cli.inspect.status": ("status",),
    "cli.inspect.night": ("night", "nights"),
    "cli.inspect.failures": ("failures",),
    "cli.inspect.explain": ("explain",),
    "cli.inspect.logs": ("logs",),
    "cli.deployed_stack": ("outputs",),
    "cli.inspect.hours": ("hours",),
    "cli.inspect.report": ("report",),
    "cli.inspect.verify": ("verify",),
    "cli.change.requests": ("sweep", "promote", "reprocess"),
    "cli.change.executions": ("overnight", "backfill"),
    "cli.cost.cost": ("plan", "cost"),
    "cli.cost.sizing": ("simulate", "calibrate"),
    "cli.demo.run": ("demo",),
    "cli.offline.convert": ("convert",),
    "cli.offline.try_file": ("try",),
    "cli.doctor.checks": ("doctor",),
    "cli.change.stream": ("stream status", "stream start", "stream stop"),
    "cli.change.dead_letters": ("dead-letters ls", "dead-letters redrive"),
    "cli.local_clouds": ("local up", "local down", "local ls"),
    "cli.offline.settings": ("settings check", "settings explain"),
    "cli.quarantine.listing": ("quarantine ls", "quarantine show"),
    "cli.quarantine.repair": ("quarantine export", "quarantine retry"),
    "cli.catalog.suggest": ("catalog suggest",),
    "cli.catalog.drop_columns": ("catalog drop-columns",),
    "cli.inspect.tables": ("tables status", "tables restore", "tables rebuild"),
}
"""Modules with the words of their commands, in the order of ``--help``."""

Stage = Annotated[str, typer.Option(help="Stage of the stack.")]
Local = Annotated[bool, typer.Option("--local", help="Use the cloud that `local up` runs on this machine.")]
Profile = Annotated[str | None, typer.Option("--profile", help="Profile of ~/.aws/config.")]
Region = Annotated[str | None, typer.Option(help="AWS region of the stack.")]
BucketRegion = Annotated[str | None, typer.Option("--region", help="AWS region of the buckets.")]
SettingsFile = Annotated[Path, typer.Option("--settings", help="Settings file of the stage.")]
Dataset = Annotated[str, typer.Argument(help="Name of the dataset.")]
Files = Annotated[list[str] | None, typer.Argument(help="Files: s3://bucket/key.")]
FROM = typer.Option("--from", help="UTC day or hour, such as 2026-11-21T08.")
TO = typer.Option("--to", help="UTC day or hour, inclusive.")
FirstHour = Annotated[str | None, FROM]
LastHour = Annotated[str | None, TO]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Start it without waiting for its end.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen; change nothing.")]
Limit = Annotated[int, typer.Option(min=1, help="Maximum number of entries to read from each list.")]
Cores = Annotated[int, typer.Option(min=1, help="Cores to use.")]
ALL_CORES = os.cpu_count() or 1
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a command: the document for a program, a function that prints it for a person, the exit code."""

    document: object
    show: Callable[[], object]
    code: ExitCode = ExitCode.OK

    def print(self, *, as_json: bool) -> ExitCode:
        if as_json:
            typer.echo(format_json(self.document))
        else:
            self.show()
        return self.code


@dataclass(frozen=True, slots=True)
class Place:
    """The location of a stack."""

    stage: Stage = "dev"
    local: Local = False
    profile: Profile = None
    region: Region = None

    @property
    def account_options(self) -> str:
        """The options with which the person named account and region, with a space before each.

        They are the same for the AWS command line and for ``hybrid-router``.
        """
        named = (("--profile", self.profile), ("--region", self.region))
        return "".join(f" {option} {shlex.quote(value)}" for option, value in named if value is not None)

    @property
    def cdk(self) -> str:
        """CDK's command line for the account and region that the person named; it has no option for the region."""
        environment = "" if self.region is None else f"AWS_REGION={shlex.quote(self.region)} "
        return f"{environment}cdk{replace(self, region=None).account_options}"


DEFAULT_PLACE = Place()
OPTION = inspect.Parameter.KEYWORD_ONLY
"""How typer passes each value."""


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a person passed: the fields of a request to the stack."""
    return {name: value for name, value in options.items() if value is not None}


class Group(TyperGroup):
    """Commands that begin with the group's name, or the one-word commands next to the groups passed at creation."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401
        super().__init__(**options)
        # The whole command line is the group without a name.
        own = {
            words.rpartition(" ")[2]: (module, words)
            for module, named in MODULES.items()
            for words in named
            if words.rpartition(" ")[0] == self.name
        }
        self.commands = _Commands(own | dict(self.commands))


class _Commands(UserDict[str, Any]):
    """Name -> command, or the module and the words of a command that is made on first use."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        if isinstance(place := super().__getitem__(name), tuple):
            module, words = place
            function = getattr(import_module(module), f"{re.sub('[ -]', '_', words)}_command")
            app = typer.Typer(add_completion=False)
            app.command(name)(_as_called(function))
            self[name] = typer.main.get_command(app)
        return super().__getitem__(name)


def _as_called(function: Callable[..., Answer | int | None]) -> Callable[..., None]:
    """Return a function whose parameters are the command's options; options of the stack come last in ``--help``."""
    signature = inspect.signature(function, eval_str=True)
    parameters, has_answer = dict(signature.parameters), signature.return_annotation is Answer
    if has_answer:
        parameters["as_json"] = inspect.Parameter("as_json", OPTION, default=False, annotation=Json)
    kinds: dict[str, Any] = {name: item.annotation for name, item in parameters.items()}
    groups: dict[str, Any] = {
        name: Place if name == "stack" else kind for name, kind in kinds.items() if is_dataclass(kind)
    }
    named: list[inspect.Parameter] = []
    for name in sorted(parameters, key="stack".__eq__):
        parts = (
            inspect.signature(groups[name], eval_str=True).parameters if name in groups else {name: parameters[name]}
        )
        named += (item.replace(kind=OPTION) for item in parts.values())

    @wraps(function)
    def called(**options: Any) -> None:  # noqa: ANN401
        as_json = has_answer and options.pop("as_json")
        for name, kind in groups.items():
            options[name] = kind(**{item.name: options.pop(item.name) for item in fields(kind)})
        if "stack" in groups:
            from cli.deployed_stack import connect_to_stage

            options["stack"] = connect_to_stage(options["stack"])
        try:
            answer = function(**options)
            code = answer.print(as_json=as_json) if isinstance(answer, Answer) else answer
        except HybridRouterError as error:
            if stack := options.get("stack"):
                error.args = tuple(stack.runnable(item) if isinstance(item, str) else item for item in error.args)
            raise
        raise typer.Exit(code or ExitCode.OK)

    cast("Any", called).__signature__ = inspect.Signature(named)
    called.__annotations__ = {item.name: item.annotation for item in named}
    return called
