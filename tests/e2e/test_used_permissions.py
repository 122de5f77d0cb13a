"""Every permission of the template is used by these tests, or docs/security.md says why it is granted.

It has to run after the others: ``tests/e2e/conftest.py`` puts it last.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e import other_clouds
from tests.e2e.permission_record import granted, never_used, used
from tests.e2e.removals.table import REMOVALS

if TYPE_CHECKING:
    from tests.e2e.scenario import Scenario

E2E = Path(__file__).parent
PAGE = E2E.parents[1] / "docs/security.md"
STACK = "hybrid-router-e2e"
ROW = re.compile(r"^\| ([A-Za-z, ]+) \| ((?:`[a-z0-9-]+:[A-Za-z0-9*]+`(?:, )?)+) \| \S.* \|$", re.MULTILINE)
ALL_LONG = re.compile(r"^pytestmark = pytest.mark.long$", re.MULTILINE)


def played() -> set[tuple[str, str]]:
    """Role and action of each removal: where the long tests are left out, they stand for uses of theirs."""
    return {(removal.role, action) for removal in REMOVALS for action in removal.actions.split()}


def modules(*, long: bool) -> set[str]:
    """The files with tests of the stack; without ``long``, those that have tests of ``make test``."""
    paths = (*E2E.glob("test_*.py"), *E2E.glob("removals/test_*.py"))
    return {path.name for path in paths if long or not ALL_LONG.search(path.read_text(encoding="utf-8"))}


def explained() -> set[tuple[str, str]]:
    """Role and action of each row of the page's table."""
    section = PAGE.read_text(encoding="utf-8").partition("## Granted, and used by no test")[2].partition("\n## ")[0]
    return {
        (role, action)
        for roles, actions in ROW.findall(section)
        for role in roles.split(", ")
        for action in re.findall(r"`([^`]+)`", actions)
    }


def test_every_permission_is_used_or_explained(scenario: Scenario, request: pytest.FixtureRequest) -> None:
    with_long = any(item.get_closest_marker("long") for item in request.session.items)
    if missing := modules(long=with_long) - {item.path.name for item in request.session.items}:
        pytest.skip(f"only after all end-to-end tests; not selected: {', '.join(sorted(missing))}")
    # Given everything that the roles used while the end-to-end tests ran
    uses = used(scenario.cloud.logs_dir / "permissions.jsonl", STACK) | other_clouds.USES
    # Then every grant was used, was missed, or has its reason, and no reason is left over
    unused = never_used(granted(scenario.cloud.client("iam"), STACK), uses)
    missed = other_clouds.MISSED if with_long else played()
    assert unused - missed - explained() == set(), "granted and never used: remove the grant, or explain it on the page"
    assert explained() - unused == set(), "docs/security.md calls them unused: they were used, or are not granted"
