"""``hybrid-router outputs``: names, URLs and ARNs of what the stack consists of."""

from typing import Annotated

import typer

from cli.commands import Json, command
from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode
from cli.terminal import print_answer, print_facts
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
        print_answer(outputs, lambda: print_facts(outputs.items()), as_json=as_json)
    elif name in outputs:
        print_answer({name: outputs[name]}, lambda: typer.echo(outputs[name]), as_json=as_json)
    else:
        raise InvalidInputError(f"the stack has no output {name!r}: it has {', '.join(outputs)}")
    return ExitCode.FINE
