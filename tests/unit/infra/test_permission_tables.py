"""Each permission of the template is taken away by a test or explained in docs/security.md, which lists both.

Those on a customer's KMS key are compared with what uses the key in ``tests/unit/infra/test_encryption.py``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from infra.arrivals import NOTIFICATIONS_HANDLER_ID
from tests.e2e.removals.table import REMOVALS
from tests.e2e.test_used_permissions import explained, played
from tests.unit.infra.conftest import listed

if TYPE_CHECKING:
    from tests.unit.infra.conftest import Assembly

PAGE = Path(__file__).parents[3] / "docs" / "security.md"
POLICY = re.compile(r"DefaultPolicy\w{8}$")


def granted(assembly: Assembly) -> set[tuple[str, str]]:
    """Role and action of each statement; without those of CDK's own function, which works at a deployment only."""
    return {
        (POLICY.sub("", name), action)
        for name, statement in assembly.statements()
        if POLICY.search(name) and statement["Effect"] == "Allow" and not name.startswith(NOTIFICATIONS_HANDLER_ID)
        for action in listed(statement["Action"])
    }


def test_every_permission_is_taken_away_or_explained(assembly: Assembly, other_assembly: Assembly) -> None:
    # Given a stage with all that stages can have
    grants = {item for item in granted(assembly) | granted(other_assembly) if not item[1].startswith("kms:")}
    # Then
    assert grants - played() - explained() == set(), "play it in tests/e2e/removals, or explain it"
    assert (played() | explained()) - grants == set(), "not granted"
    assert played() & explained() == set(), "what a test takes away is used"


def test_no_permission_is_taken_away_twice() -> None:
    assert len(played()) == sum(len(removal.actions.split()) for removal in REMOVALS)


def test_the_page_has_every_removal() -> None:
    rows = re.findall(r"^\| (\w+Role) \| ((?:`[^`]+`(?:, )?)+) \| (.+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    expected = [
        (removal.role, ", ".join(f"`{action}`" for action in removal.actions.split()), removal.what, removal.told)
        for removal in REMOVALS
    ]
    assert rows == expected
