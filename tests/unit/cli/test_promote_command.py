"""`hybrid-router promote`: its request, its output, and its exit code."""

import io
import json
from typing import Any

import pytest

from cli.change.requests import promote_files
from cli.deployed_stack import DeployedStack, FunctionFailedError
from infra.outputs import StackOutputs, output_key
from lake.errors import InvalidInputError, UnknownDatasetError
from router.requests.promote import PROMOTE_COUNTS as COUNTS
from tests.unit.lake.world import RESOURCES

NAMES = (
    "overnight",
    "backfill",
    "stream_window",
    "overnight_schedule",
    "stream_control",
    "plan",
    "backfill_function",
    "promote",
    "reprocess",
    "resubmit",
    "sweep",
    "alarm_topic",
)
OUTPUTS = {output_key(name): name for name in (*NAMES, "arrivals_queue", "dead_letters")}


class FakeLambda:
    """Returns the same response to every invocation."""

    def __init__(self, body: dict[str, Any], error: bool = False) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self._body, self._error = body, error

    def invoke(self, FunctionName: str, Payload: str) -> dict[str, Any]:  # noqa: N803
        self.requests.append((FunctionName, json.loads(Payload)))
        response: dict[str, Any] = {"Payload": io.BytesIO(json.dumps(self._body).encode())}
        return {**response, "FunctionError": "Unhandled"} if self._error else response


def stack_with(functions: FakeLambda) -> DeployedStack:
    resources = {output_key(name.removeprefix("--")): value for name, value in RESOURCES.to_arguments().items()}
    unused: Any = None
    outputs = StackOutputs.from_outputs({**OUTPUTS, **resources})
    return DeployedStack(outputs, unused, unused, unused, unused, functions, unused)


def response(**counts: Any) -> dict[str, Any]:
    return {"dryRun": False, **dict.fromkeys(COUNTS, 0), "messages": [], "omitted": 0, **counts}


@pytest.mark.parametrize(
    ("body", "code", "summary"),
    [
        (response(promoted=3, manifests=2), 0, "promoted: 3 (new manifests: 2)"),
        (response(promoted=1, manifests=1, unknown=1), 0, "promoted: 1 (new manifests: 1), 1 unknown"),
        (response(dryRun=True, promoted=1, manifests=1), 0, "dry run, nothing was done; to be promoted: 1 (new manife"),
        (response(inStream=2), 0, "promoted: 0, 2 already in the stream lane"),
        (response(tooLate=1, unknown=1), 0, "promoted: 0, 1 too late, 1 unknown"),
        (response(unknown=2), 1, "promoted: 0, 2 unknown"),
        (response(ignored=1), 1, "promoted: 0, 1 ignored"),
        (response(), 0, "nothing to promote: no file of this selection is queued"),
    ],
)
def test_the_exit_code_is_1_only_if_every_file_is_unknown_or_ignored(
    body: dict[str, Any], code: int, summary: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert promote_files(stack_with(FakeLambda(body)), {"files": ["s3://b/k"]}, dry_run=False) == code
    assert capsys.readouterr().out.startswith(summary)


def test_only_the_given_options_are_sent_and_every_message_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    functions = FakeLambda(response(promoted=2, manifests=1, messages=["one", "two"], omitted=1234))
    options = {"files": None, "dataset": "orders", "from": "2026-11-20", "to": None}
    assert promote_files(stack_with(functions), options, dry_run=True) == 0
    assert functions.requests == [("promote", {"dataset": "orders", "from": "2026-11-20", "dryRun": True})]
    assert capsys.readouterr().out.splitlines()[:3] == ["one", "two", "... and 1,234 more"]


@pytest.mark.parametrize(
    ("functions", "error", "sentence"),
    [
        (FakeLambda({"refused": "set this", "error": "InvalidInputError"}), InvalidInputError, "set this"),
        (FakeLambda({"refused": "set this", "error": "UnknownDatasetError"}), UnknownDatasetError, "set this"),
        (
            FakeLambda({"errorType": "ClientError", "errorMessage": "set this"}, error=True),
            FunctionFailedError,
            "promote failed: set this; see its log",
        ),
    ],
)
def test_a_refusal_of_the_function_is_passed_on_verbatim(
    functions: FakeLambda, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as caught:
        promote_files(stack_with(functions), {"files": ["s3://b/k"]}, dry_run=False)
    assert type(caught.value) is error
    assert str(caught.value) == sentence


@pytest.mark.parametrize("options", [{}, {"files": None}, {"files": ["s3://b/k"], "to": "2026-11-20"}])
def test_neither_files_nor_a_selection_or_both_is_refused_with_examples(options: dict[str, Any]) -> None:
    functions = FakeLambda(response())
    with pytest.raises(InvalidInputError, match="run 'hybrid-router promote s3://bucket/key', or"):
        promote_files(stack_with(functions), options, dry_run=False)
    assert functions.requests == []
