"""``make check``, the Git hooks and the checks' own configuration agree."""

from __future__ import annotations

import re
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]
MAKEFILE = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
HOOKS = (CHECKOUT / ".pre-commit-config.yaml").read_text(encoding="utf-8")


def test_every_check_is_a_hook_and_every_hook_is_a_check() -> None:
    # Given the prerequisites of `make check` and all targets that are checks.
    prerequisites = re.findall(r"^check: (.*?)(?: ##.*)?$", MAKEFILE, re.MULTILINE)
    checks = [name for line in prerequisites for name in line.split() if name != "setup"]
    targets = re.findall(r"^(check-[a-z-]+):", MAKEFILE, re.MULTILINE)
    # Then each is there once, and the hooks are the same list in the same order.
    assert checks == targets
    assert re.findall(r"^ +- id: (.*)$", HOOKS, re.MULTILINE) == checks
    entries = re.findall(r"^ +entry: (.*)$", HOOKS, re.MULTILINE)
    assert entries == [f"make --no-print-directory {name}" for name in checks]
