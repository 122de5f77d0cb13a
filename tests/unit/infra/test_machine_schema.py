"""npm's asl-validator accepts every state machine: schema, state names, JSONata, paths and ARNs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from infra.node import node_binary, node_folder

ROOT = Path(__file__).parents[3]
PACKAGE = Path(__file__).parent / "asl_validator"
"""package.json and its lock: the validator and all it needs, by exact version and hash."""
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
    """The validator's program, installed once in .cache by the bundled Node's npm."""
    lock = (PACKAGE / "package-lock.json").read_bytes()
    folder = ROOT / ".cache" / f"asl-validator-{hashlib.sha256(lock).hexdigest()[:12]}"
    program = folder / "node_modules" / "asl-validator" / "dist" / "bin" / "asl-validator.js"
    if not program.is_file():
        unfinished = folder.with_suffix(f".{os.getpid()}")
        shutil.copytree(PACKAGE, unfinished)
        npm = node_folder() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        command = [str(node_binary()), str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        # Node has its own certificate authorities; a company's network needs those that the machine trusts.
        trusted = os.environ.get("NODE_EXTRA_CA_CERTS") or ssl.get_default_verify_paths().cafile or ""
        environment = {**os.environ, "NODE_EXTRA_CA_CERTS": trusted}
        result = subprocess.run(command, cwd=unfinished, capture_output=True, text=True, check=False, env=environment)
        if result.returncode:
            shutil.rmtree(unfinished)
            pytest.fail(
                f"asl-validator could not be installed: give this machine access to an npm registry once "
                f"(npm config get registry), then run the test again; npm's error: {result.stderr[-600:]}"
            )
        try:
            unfinished.rename(folder)
        except OSError:
            # Another test run has installed it meanwhile; it may be using it.
            shutil.rmtree(unfinished)
    return program


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
