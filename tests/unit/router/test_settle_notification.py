"""What a person reads about an execution: the verdict, the counts, and what to do."""

import pytest

from router.settle.verdict import ExecutionOutcome, Verdict, format_notification

LOOK = "- See its datasets, what failed and why, and the logs: hybrid-router night x --stage prod\n"
OVERNIGHT = "start the state machine overnight again"
REPROCESS = "hybrid-router reprocess"
QUARANTINE = "hybrid-router quarantine ls --stage prod"


def notification(outcome: ExecutionOutcome, **counts: int) -> str:
    numbers = dict.fromkeys(("done", "failed", "open", "rows", "rejects", "failed_files", "damaged_objects"), 0)
    numbers["datasets_above_share"] = 0
    verdict = Verdict(outcome, **{**numbers, **counts}, message="what happened")
    return format_notification("x", verdict, (), stage="prod")


def test_it_begins_with_the_verdict_and_has_every_count() -> None:
    text = notification(ExecutionOutcome.FAILED, done=1, failed=2, open=3, rows=4, rejects=5, failed_files=6)
    assert text.splitlines()[:6] == [
        "Execution x of overnight, stage prod: FAILED",
        "what happened.",
        "",
        "Manifests: 1 done, 2 failed, 3 open.",
        "Published: 4 rows; in the quarantine: 5 lines, 6 files.",
        "Damaged objects: 0.",
    ]
    assert LOOK in text


@pytest.mark.parametrize(
    ("outcome", "counts", "named", "not_named"),
    [
        (
            "FAILED",
            {"failed": 1},
            [LOOK, f"{REPROCESS} --manifest <id> --stage prod"],
            [OVERNIGHT, "quarantine ls", "Restore"],
        ),
        ("FAILED", {"open": 1}, [LOOK, OVERNIGHT], ["Restore", "status", REPROCESS]),
        ("FAILED", {"damaged_objects": 1}, [LOOK, "Restore the damaged", f"{REPROCESS} --manifest"], [OVERNIGHT]),
        ("OPEN", {"open": 1}, [LOOK, "hybrid-router status --stage prod"], [OVERNIGHT]),
        ("SUCCEEDED_WITH_QUARANTINE", {"rejects": 1}, [QUARANTINE, "hybrid-router explain"], [REPROCESS]),
        ("SUCCEEDED_WITH_QUARANTINE", {"failed_files": 1}, [QUARANTINE, f"{REPROCESS} s3://"], []),
    ],
)
def test_each_finding_has_its_next_step(
    outcome: str, counts: dict[str, int], named: list[str], not_named: list[str]
) -> None:
    text = notification(ExecutionOutcome(outcome), **counts)
    assert [step for step in named if step not in text] == []
    assert [step for step in not_named if step in text] == []
