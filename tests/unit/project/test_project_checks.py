"""``make check``, the Git hooks and the checks' own configuration agree."""

from __future__ import annotations

import re
from pathlib import Path

from scripts.check_toml import find_faults

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


def test_the_toml_check_reports_what_does_not_parse_and_what_is_not_a_setting(tmp_path: Path) -> None:
    # Given a good file, a broken one, and a settings file with an unknown key.
    settings = tmp_path / "settings"
    settings.mkdir()
    files = [tmp_path / "good.toml", tmp_path / "broken.toml", settings / "prod.toml"]
    for file, text in zip(files, ("a = 1\n", "a = \n", 'stage = "prod"\ncolour = "blue"\n'), strict=True):
        file.write_text(text, encoding="utf-8")
    # When
    faults = find_faults(files)
    # Then the last two are reported, each with its reason.
    assert [fault.partition(":")[0] for fault in faults] == [str(file) for file in files[1:]]
    assert "Invalid value" in faults[0]
    assert "colour" in faults[1]
