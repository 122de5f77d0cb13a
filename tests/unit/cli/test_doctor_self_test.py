"""What ``doctor`` says of the last self-test of the alarms, by its row and the clock."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from cli.doctor.account import judge_self_test
from cli.doctor.finding import Readiness
from lake.ledger import SelfTestRow

SENT = "2026-11-01T09:00:00Z"


@pytest.mark.parametrize(
    ("row", "minutes", "state", "text"),
    [
        (SelfTestRow(), 0, Readiness.SKIPPED, "none was sent yet"),
        (SelfTestRow(SENT, "m1", "2026-11-01T09:10:00Z"), 99, Readiness.OK, f"sent {SENT}, found 2026-11-01T09:10:00Z"),
        (SelfTestRow(SENT, "m1"), 30, Readiness.SKIPPED, "the next sweep looks"),
        (SelfTestRow(SENT, "m1"), 31, Readiness.TO_DO, "did not come back: alarms may not reach you"),
        (SelfTestRow(SENT), 31, Readiness.TO_DO, "did not come back"),
    ],
)
def test_a_self_test_is_found_under_way_or_lost(row: SelfTestRow, minutes: int, state: Readiness, text: str) -> None:
    found = judge_self_test(row, datetime.fromisoformat(SENT) + timedelta(minutes=minutes))
    assert (found.state, text in found.text) == (state, True), found
