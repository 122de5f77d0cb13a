"""The permissions of ``resubmit``, and what makes it use them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lake.documents import put_document
from lake.layout import resubmission_key, resubmitted_lines_key
from lake.manifest import new_manifest_id
from lake.resubmission import RejectedLines, Resubmission, encode_resubmission
from tests.e2e.removals.function_plays import answer, logged, owner_of, routed
from tests.e2e.removals.removal import ANSWER, LOG, Removal

if TYPE_CHECKING:
    from tests.e2e.removals.stage import Stage


def uploaded(stage: Stage) -> str:
    """The name of a resubmission of one line, whose documents are in the control bucket."""
    file = routed(stage)
    row = stage.done_without(file, owner_of(stage, file))
    assert row.published is not None
    rejected = RejectedLines(file.uri, file.version, row.id, row.published.generation, (0,))
    resubmission = Resubmission(new_manifest_id(datetime.now(UTC)), row.partition, (rejected,))
    s3, control = stage.scenario.deployment.s3, stage.scenario.deployment.resources.control_bucket
    s3.put_object(Bucket=control, Key=resubmitted_lines_key(resubmission.name), Body=b'{"n": 1}\n')
    put_document(s3, control, resubmission_key(resubmission.name), encode_resubmission(resubmission))
    return resubmission.name


def a_resubmission(stage: Stage) -> str:
    return answer(stage, "resubmit", {"resubmission": uploaded(stage)})


def a_resubmission_that_is_recorded(stage: Stage) -> str:
    return logged(stage, "resubmit", {"resubmission": uploaded(stage)})


def a_resubmission_without_its_document(stage: Stage) -> str:
    return answer(stage, "resubmit", {"resubmission": new_manifest_id(datetime.now(UTC))})


OF_RESUBMIT = (
    Removal(
        "RouterresubmitRole",
        "dynamodb:GetItem dynamodb:Query dynamodb:PutItem s3:GetObject s3:PutObject",
        "repaired lines are not recorded",
        ANSWER,
        a_resubmission,
    ),
    Removal(
        "RouterresubmitRole",
        "dynamodb:UpdateItem s3:DeleteObject",
        "repaired lines wait for the sweep, or their intent does",
        LOG,
        a_resubmission_that_is_recorded,
    ),
    Removal(
        "RouterresubmitRole",
        "s3:ListBucket",
        "a missing document looks like a denied one",
        ANSWER,
        a_resubmission_without_its_document,
    ),
)
