"""A damaged manifest document holds back its own files only."""

from lake.layout import manifest_key
from lake.ledger import State
from tests.unit.router.conftest import Deployment
from tests.unit.router.promote.promoting import ask, counts, owned


def test_a_promote_moves_the_files_of_the_other_manifests(deployment: Deployment) -> None:
    # Given two manifests, and the document of one of them was overwritten
    damaged, good = owned(deployment, "a"), owned(deployment, "b")
    deployment.raw_s3.put_object(Bucket="control", Key=manifest_key(damaged), Body=b"{}")

    # When both files are promoted
    answer = ask(deployment, "a", "b")

    # Then the other one is moved, and the message says why this one is not
    assert counts(answer) == {"notMoved": 1, "promoted": 1, "manifests": 1}
    assert f"{damaged}.json was changed after the ledger recorded it" in " ".join(answer["messages"])
    assert deployment.row(damaged).state == State.QUEUED
    assert deployment.row(good).superseded_by
