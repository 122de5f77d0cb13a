"""``hybrid-router outputs``: names, URLs and ARNs of what the stack consists of."""

import json
from typing import Annotated

import typer

from cli.commands import Json, command
from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode
from cli.terminal import print_facts
from lake.errors import InvalidInputError


@command("outputs")
def print_outputs(
    stack: DeployedStack,
    name: Annotated[str | None, typer.Argument(help="Print the value of this output alone.")] = None,
    *,
    as_json: Json = False,
) -> int:
    """Print names, URLs and ARNs of the stack's buckets, queues, functions and state machines."""
    outputs = dict(sorted(stack.outputs.to_outputs().items()))
    if name is None:
        if as_json:
            typer.echo(json.dumps(outputs, indent=1))
        else:
            print_facts(outputs.items())
        return ExitCode.FINE
    if name not in outputs:
        raise InvalidInputError(f"the stack has no output {name!r}: it has {', '.join(outputs)}")
    typer.echo(json.dumps({name: outputs[name]}, indent=1) if as_json else outputs[name])
    return ExitCode.FINE
