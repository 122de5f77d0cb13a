"""Every permission of the template is used by these tests, or docs/security.md gives its reason.

It must run after the others: ``tests/e2e/conftest.py`` puts it last.
"""

import re
from pathlib import Path

import pytest

from tests.e2e.permissions import OTHER_USES, granted, never_used, used
from tests.e2e.scenario import Scenario

E2E = Path(__file__).parent
PAGE = E2E.parents[1] / "docs/security.md"
STACK = "hybrid-router-e2e"
ROW = re.compile(r"^\| ([A-Za-z, ]+) \| ((?:`[a-z0-9-]+:[A-Za-z0-9*]+`(?:, )?)+) \| \S.* \|$", re.MULTILINE)
pytestmark = pytest.mark.long
"""``make permissions`` runs it: only with the long tests is every use seen."""


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
    selected = {item.path.name for item in request.session.items}
    if missing := {path.name for path in E2E.glob("test_*.py")} - selected:
        pytest.skip(f"only after all end-to-end tests; not selected: {', '.join(sorted(missing))}")
    # Given all permissions that the roles used during the end-to-end tests
    uses = used(scenario.cloud.logs_dir / "permissions.jsonl", STACK) | OTHER_USES
    # Then every grant was used or has its reason, and no reason is superfluous
    unused = never_used(granted(scenario.cloud.client("iam"), STACK), uses)
    assert unused - explained() == set(), "granted and never used: remove the grant, or explain it on the page"
    assert explained() - unused == set(), "docs/security.md calls them unused: they were used, or are not granted"
