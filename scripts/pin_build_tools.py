"""``make pins``: the versions and hashes of the build back ends and their dependencies, in pyproject.toml.

uv.lock has no build dependencies. ``tool.uv.build-constraint-dependencies`` lists them with their hashes, and
``require-build-hashes`` refuses any other.
"""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
HIDDEN_REQUIREMENTS = ("editables", "puccinialin", "setuptools", "wheel")
"""Requirements of hatchling to install the checkout, of maturin without Rust, and of the build of pyspark."""
_TABLE = re.compile(r"^build-constraint-dependencies = \[\n.*?^\]\n", re.MULTILINE | re.DOTALL)


def build_requirements(checkout: Path) -> list[str]:
    """Return the requirements to pin: the back ends that the checkout's projects name, and the hidden ones."""
    files = (checkout / "pyproject.toml", checkout / "native" / "pyproject.toml")
    named = [tomllib.loads(file.read_text(encoding="utf-8"))["build-system"]["requires"] for file in files]
    return [*(requirement for requires in named for requirement in requires), *HIDDEN_REQUIREMENTS]


def constraints(compiled: str) -> str:
    """Return the table for pyproject.toml from the output of ``uv pip compile --generate-hashes``."""
    lines = []
    for pin in compiled.replace("\\\n", "").splitlines():
        requirement, *hashes = pin.split(" --hash=")
        name = requirement.partition(";")[0].strip()
        lines.append(f'    {{ requirement = "{name}", hashes = [')
        lines += [f'        "{digest.strip()}",' for digest in hashes]
        lines.append("    ] },")
    return "\n".join(["build-constraint-dependencies = [", *lines, "]\n"])


def main() -> int:
    """Write the newest versions that the requirements allow into pyproject.toml; return the exit code of ``uv``."""
    # `uv run` sets UV to its own path.
    command = [os.environ["UV"], "pip", "compile", "--quiet", "--universal", "--python-version=3.11"]
    command += ["--generate-hashes", "--no-header", "--no-annotate", "-"]
    requirements = "\n".join(build_requirements(CHECKOUT))
    result = subprocess.run(command, input=requirements, stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode == 0:
        project = CHECKOUT / "pyproject.toml"
        text = project.read_text(encoding="utf-8")
        project.write_text(_TABLE.sub(lambda _: constraints(result.stdout), text), encoding="utf-8")
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())
