"""Options that several commands have, and the decorator that finds the stack for a command."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

Stage = Annotated[str, typer.Option(help="Stage of the stack.")]
Local = Annotated[bool, typer.Option("--local", help="Use the cloud that `local up` runs on this machine.")]
Profile = Annotated[str | None, typer.Option(help="Profile of ~/.aws/config.")]
Region = Annotated[str | None, typer.Option(help="AWS region of the stack.")]
SettingsFile = Annotated[Path, typer.Option("--settings", help="Settings file of the stage.")]
FirstHour = Annotated[str | None, typer.Option("--from", help="UTC day or hour, such as 2026-11-21T08.")]
LastHour = Annotated[str | None, typer.Option("--to", help="UTC day or hour, inclusive.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen; change nothing.")]
Limit = Annotated[int, typer.Option(min=1, help="Maximum number of entries that are read of each list.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def _place(stage: Stage = "dev", local: Local = False, profile: Profile = None, region: Region = None) -> None:
    """The options that say where a stack is."""


def on_stack(command: Callable[..., int]) -> Callable[..., None]:
    """Connect a command to the stack of its stage: its first parameter becomes ``--stage``, ``--local``, ``--profile``
    and ``--region``, the number that it returns becomes the exit code, and the commands that its errors advise get the
    options of the stack.
    """

    @wraps(command)
    def connected(stage: str, local: bool, profile: str | None, region: str | None, **options: Any) -> None:  # noqa: ANN401
        from cli.connect import connect_to_stage
        from lake.errors import HybridRouterError

        stack = connect_to_stage(stage, local=local, profile=profile, region=region)
        try:
            code = command(stack, **options)
        except HybridRouterError as error:
            error.args = tuple(stack.runnable(item) if isinstance(item, str) else item for item in error.args)
            raise
        raise typer.Exit(code)

    _, *own = _parameters_of(command)
    named = [item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in (*own, *_parameters_of(_place))]
    connected.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    connected.__annotations__ = {item.name: item.annotation for item in named}
    return connected


def _parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    # Only type checkers import the class of the first parameter.
    signature = inspect.signature(function, eval_str=True, locals={"DeployedStack": object})
    return list(signature.parameters.values())
