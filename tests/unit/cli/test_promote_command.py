"""`hybrid-router promote`: what it asks for, what it prints, and when it fails."""

import io
import json
from typing import Any

import pytest

from cli.deployed_stack import Deployment
from cli.promote import promote_files
from infra.outputs import StackOutputs, output_key
from lake.errors import InvalidInputError
from router.promote.report import COUNTS
from tests.unit.lake.world import RESOURCES

NAMES = ("overnight", "backfill", "stream_window", "overnight_schedule", "stream_control", "promote", "alarm_topic")
OUTPUTS = {output_key(name): name for name in (*NAMES, "arrivals_queue", "dead_letters")}


class FakeLambda:
    """Answers every invocation alike."""

    def __init__(self, body: dict[str, Any], error: bool = False) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._body, self._error = body, error

    def invoke(self, FunctionName: str, Payload: str) -> dict[str, Any]:  # noqa: N803
        self.asked.append((FunctionName, json.loads(Payload)))
        answer: dict[str, Any] = {"Payload": io.BytesIO(json.dumps(self._body).encode())}
        return {**answer, "FunctionError": "Unhandled"} if self._error else answer


def deployment(functions: FakeLambda) -> Deployment:
    resources = {output_key(name.removeprefix("--")): value for name, value in RESOURCES.to_arguments().items()}
    nothing: Any = None
    outputs = StackOutputs.from_outputs({**OUTPUTS, **resources})
    return Deployment(outputs, nothing, nothing, nothing, nothing, functions, nothing)


def answer(**counts: Any) -> dict[str, Any]:
    return {"dryRun": False, **dict.fromkeys(COUNTS, 0), "messages": [], "omitted": 0, **counts}


@pytest.mark.parametrize(
    ("body", "code", "summary"),
    [
        (answer(promoted=3, manifests=2), 0, "promoted: 3 (new manifests: 2)"),
        (answer(promoted=1, manifests=1, unknown=1), 0, "promoted: 1 (new manifests: 1), 1 unknown"),
        (answer(dryRun=True, promoted=1, manifests=1), 0, "dry run, nothing was done; to be promoted: 1 (new manife"),
        (answer(inStream=2), 0, "promoted: 0, 2 in the stream lane already"),
        (answer(tooLate=1, unknown=1), 0, "promoted: 0, 1 too late, 1 unknown"),
        (answer(unknown=2), 1, "promoted: 0, 2 unknown"),
        (answer(ignored=1), 1, "promoted: 0, 1 ignored"),
        (answer(), 0, "nothing is queued there"),
    ],
)
def test_it_fails_only_where_no_name_was_right(
    body: dict[str, Any], code: int, summary: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert promote_files(deployment(FakeLambda(body)), {"files": ["s3://b/k"]}, dry_run=False) == code
    assert capsys.readouterr().out.startswith(summary)


def test_only_what_was_typed_is_asked_for_and_every_sentence_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    functions = FakeLambda(answer(promoted=2, manifests=1, messages=["one", "two"], omitted=1234))
    given = {"files": None, "dataset": "orders", "from": "2026-11-20", "to": None}
    assert promote_files(deployment(functions), given, dry_run=True) == 0
    assert functions.asked == [("promote", {"dataset": "orders", "from": "2026-11-20", "dryRun": True})]
    assert capsys.readouterr().out.splitlines()[:3] == ["one", "two", "... and 1,234 more"]


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [("InvalidInputError", "type this"), ("ClientError", "promote failed: type this; see its log")],
)
def test_what_the_function_refuses_is_said_as_it_is(kind: str, sentence: str) -> None:
    functions = FakeLambda({"errorType": kind, "errorMessage": "type this"}, error=True)
    with pytest.raises(InvalidInputError) as caught:
        promote_files(deployment(functions), {"files": ["s3://b/k"]}, dry_run=False)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("given", [{}, {"files": None}, {"files": ["s3://b/k"], "to": "2026-11-20"}])
def test_neither_or_both_is_refused_with_what_to_type(given: dict[str, Any]) -> None:
    functions = FakeLambda(answer())
    with pytest.raises(InvalidInputError, match="type hybrid-router promote s3://bucket/key, or hybrid-router promote"):
        promote_files(deployment(functions), given, dry_run=False)
    assert functions.asked == []
