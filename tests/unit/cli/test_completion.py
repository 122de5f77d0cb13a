"""Completion of commands in bash, zsh and fish: the script that a shell loads, and what the command answers it."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from cli.main import app

INSTRUCTION = "_HYBRID_ROUTER_COMPLETE"
TYPED = "hybrid-router settings ch"
ASKED = {
    "bash": {"COMP_WORDS": TYPED, "COMP_CWORD": "2"},
    "zsh": {"_TYPER_COMPLETE_ARGS": TYPED},
    "fish": {"_TYPER_COMPLETE_ARGS": TYPED, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}
"""What the script of each shell puts into the environment."""


def answer(environment: dict[str, str]) -> str:
    return CliRunner().invoke(app, [], prog_name="hybrid-router", env=environment).stdout


@pytest.mark.parametrize("shell", ASKED)
def test_a_shell_gets_its_script_and_the_rest_of_a_command(shell: str) -> None:
    script = answer({INSTRUCTION: f"source_{shell}"})
    assert f"{INSTRUCTION}=complete_{shell}" in script
    completed = answer({INSTRUCTION: f"complete_{shell}", **ASKED[shell]})
    assert "check" in completed
    assert "explain" not in completed
