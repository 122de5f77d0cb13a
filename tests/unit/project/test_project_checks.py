"""``make check``, the Git hooks and the checks' own configuration agree, and what other runs name is there."""

import re
from pathlib import Path

from tests.chaos.injection import fault_space

CHECKOUT = Path(__file__).parents[3]
MAKEFILE = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
NIGHTLY = (CHECKOUT / ".github" / "workflows" / "nightly.yml").read_text(encoding="utf-8")
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


def test_two_nights_play_every_fault() -> None:
    # Given the seeds of the nightly run: the first fault of a history is chosen by its seed.
    ((step, histories),) = re.findall(r"tests\.chaos --seed \$\(\( day \* (\d+) \)\) --histories (\d+)", NIGHTLY)
    faults = fault_space()

    def played(day: int) -> set[tuple[str, str, str]]:
        first = day * int(step)
        return {faults[seed % len(faults)] for seed in range(first, first + int(histories))}

    # Then no two nights in a row leave one out, whenever they begin, and each night has every action.
    for day in range(len(faults)):
        assert played(day) | played(day + 1) == set(faults)
        assert {action for _, _, action in played(day)} == {action for _, _, action in faults}
