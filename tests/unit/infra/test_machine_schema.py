"""npm's asl-validator accepts every state machine: schema, state names, JSONata, paths and ARNs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from infra.synth import node_binary
from tests.unit.infra.npm_packages import install

ROOT = Path(__file__).parents[3]
PACKAGE = Path(__file__).parent / "asl_validator"
FILES = sorted((ROOT / "statemachines").glob("*.asl.json"))
BROKEN = {
    "a state that does not exist": lambda machine: machine["States"]["Settle"].update(Next="Nowhere"),
    "a resource that is not an ARN": lambda machine: machine["States"]["Settle"].update(Resource="lambda"),
    "an expression that does not parse": lambda machine: machine["States"]["WaitForLease"].update(Seconds="{% 1 + %}"),
    "a field of another state type": lambda machine: machine["States"]["Refused"].update(Next="Settle"),
    "no start": lambda machine: machine.pop("StartAt"),
}


@pytest.fixture(scope="session")
def validator() -> Path:
    return install(PACKAGE, "asl-validator/dist/bin/asl-validator.js")


def validate(validator: Path, file: Path) -> subprocess.CompletedProcess[str]:
    command = [str(node_binary()), str(validator), "--json-path", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_validator_accepts_the_machine(validator: Path, file: Path) -> None:
    result = validate(validator, file)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("fault", BROKEN)
def test_the_validator_finds_a_fault(validator: Path, tmp_path: Path, fault: str) -> None:
    machine = json.loads((ROOT / "statemachines" / "overnight.asl.json").read_text(encoding="utf-8"))
    BROKEN[fault](machine)
    file = tmp_path / "broken.asl.json"
    file.write_text(json.dumps(machine))
    assert validate(validator, file).returncode != 0
