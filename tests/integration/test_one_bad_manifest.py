"""The error of one manifest, at any point of its conversion, does not end the conversion of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from transform import convert as convert_module

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.integration.conversion_world import ConversionWorld


@pytest.mark.parametrize(
    ("step", "state"), [("claim_or_finish", "WAITING"), ("plan_attempt", "FAILED"), ("finalize", "FAILED")]
)
def test_an_unexpected_error_of_one_manifest(
    world: ConversionWorld, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, step: str, state: str
) -> None:
    # Given: a step that always fails for one of two manifests, in a way that no code expects
    world.configure("batch", max_attempts=2)
    bad = world.enqueue([world.put("orders/bad.json", b'{"a":1}\n')])
    good = world.enqueue([world.put("orders/good.json", b'{"a":2}\n')])
    original = getattr(convert_module, step)

    def failing(context: Any, subject: Any, *rest: Any) -> Any:
        manifest = subject if isinstance(subject, str) else getattr(subject, "claim", subject).row.id
        if manifest == bad:
            raise ZeroDivisionError("a defect of this version")
        return original(context, subject, *rest)

    monkeypatch.setattr(convert_module, step, failing)

    # When
    outcomes = world.convert([bad, good], spark)

    # Then
    assert [outcome.state for outcome in outcomes] == [state, "DONE"]
    assert "ZeroDivisionError: a defect of this version" in str(outcomes[0].reason)
    assert any("Traceback" in line and bad in line for line in world.log_lines)
    assert world.lake() == [{"a": "2"}]
    assert world.unfinished_uploads() == []
