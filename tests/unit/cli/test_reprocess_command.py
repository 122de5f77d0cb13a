"""`hybrid-router reprocess`: its requests, its output, and its exit code."""

import io
import json
from typing import Any

import pytest

from cli.change.requests import UNQUEUED_LABELS, reprocess_manifests
from cli.deployed_stack import DeployedStack
from infra.outputs import OPTIONAL, StackOutputs
from lake.errors import InvalidInputError
from lake.resource_names import ResourceNames
from router.requests.reprocess import REPROCESS_COUNTS
from tests.unit.lake.world import RESOURCES

RANGE = {"dataset": "orders", "from": "2026-11-20T08", "to": "2026-11-20T09"}


class FakeCloud:
    """Returns one response after the other, and remembers what it was asked and what was started."""

    def __init__(self, *responses: dict[str, Any]) -> None:
        self.requests: list[dict[str, Any]] = []
        self.started: list[dict[str, Any]] = []
        self._responses = list(responses)

    def invoke(self, FunctionName: str, Payload: str) -> dict[str, Any]:  # noqa: N803
        assert FunctionName == "reprocess"
        self.requests.append(json.loads(Payload))
        return {"Payload": io.BytesIO(json.dumps(self._responses.pop(0)).encode())}

    def start_execution(self, stateMachineArn: str, input: str) -> dict[str, str]:  # noqa: A002, N803
        self.started.append(json.loads(input))
        return {"executionArn": f"{stateMachineArn}:1"}


def stack_with(cloud: FakeCloud) -> DeployedStack:
    unused: Any = None
    names = [name for name in StackOutputs.__dataclass_fields__ if name not in ("resources", *OPTIONAL)]
    resources = ResourceNames(**{name: getattr(RESOURCES, name) for name in ResourceNames.__dataclass_fields__})
    texts: dict[str, Any] = {name: name for name in names}
    outputs = StackOutputs(resources, **texts)
    return DeployedStack(outputs, unused, unused, cloud, unused, cloud, unused)


def response(**changes: Any) -> dict[str, Any]:
    rest = {"dryRun": False, "request": "r", "token": None, "selection": None, "messages": [], "omitted": 0}
    return {**rest, **dict.fromkeys(REPROCESS_COUNTS, 0), **changes}


def run(cloud: FakeCloud, options: dict[str, Any] | None = None, **flags: bool) -> int:
    chosen = {"every": False, "now": False, "dry_run": False, **flags}
    return reprocess_manifests(stack_with(cloud), options or {"files": ["s3://b/k"]}, **chosen)


@pytest.mark.parametrize(
    ("body", "code", "summary"),
    [
        (response(queued=2, files=3, bytes=10**9), 0, "manifests queued again: 2 (files: 3, 1.000 GB)"),
        (response(queued=1, files=1, unknown=1), 0, "manifests queued again: 1 (files: 1, 0.000 GB), 1 unknown"),
        (response(dryRun=True, queued=1), 0, "dry run, nothing was done; manifests to be queued again: 1"),
        (response(open=2, repeated=1), 0, "manifests queued again: 0, 2 still open, 1 queued by this request before"),
        (response(converted=1, unusable=1), 0, "manifests queued again: 0, 1 converted already, 1 unusable"),
        (response(unknown=2), 1, "manifests queued again: 0, 2 unknown"),
        (response(ignored=1, unusable=1), 1, "manifests queued again: 0, 1 ignored, 1 unusable"),
        (response(), 0, "nothing to reprocess: no manifest of this selection has ended"),
    ],
)
def test_the_exit_code_is_1_only_if_nothing_of_it_is_converted(
    body: dict[str, Any], code: int, summary: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(FakeCloud(body)) == code
    assert capsys.readouterr().out.startswith(summary)


def test_every_count_has_a_label() -> None:
    assert {"queued", *UNQUEUED_LABELS, "files", "bytes"} == set(REPROCESS_COUNTS)


def test_all_pages_are_one_request(capsys: pytest.CaptureFixture[str]) -> None:
    # Given: a function that needs two invocations
    first = response(queued=1, files=1, token="t", messages=["one"], omitted=1234)
    cloud = FakeCloud(first, response(queued=2, files=2, selection=RANGE, messages=["two"]))
    # When
    assert run(cloud, {**RANGE, "files": None}) == 0
    # Then
    identity = cloud.requests[0]["request"]
    assert cloud.requests[0] == {**RANGE, "only": "failed", "dryRun": False, "request": identity}
    assert cloud.requests[1] == {**cloud.requests[0], "token": "t"}
    printed = capsys.readouterr().out.splitlines()
    assert printed[:3] == ["one", "... and 1,234 more", "so far: manifests queued again: 1 (files: 1, 0.000 GB)"]
    assert printed[3:] == [
        "two",
        "manifests queued again: 2 (files: 2, 0.000 GB)",
        "the next overnight run converts them",
    ]


def test_now_starts_overnight_for_the_hours_that_were_queued(capsys: pytest.CaptureFixture[str]) -> None:
    cloud = FakeCloud(response(queued=1, selection=RANGE))
    assert run(cloud, now=True) == 0
    assert cloud.started == [RANGE]
    assert "overnight started: overnight:1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("body", "flags"),
    [(response(open=1), {"now": True}), (response(queued=1, selection=RANGE), {"now": True, "dry_run": True})],
)
def test_nothing_is_started_when_nothing_was_queued(body: dict[str, Any], flags: dict[str, bool]) -> None:
    cloud = FakeCloud(body)
    run(cloud, None, **flags)
    assert cloud.started == []


def test_all_is_passed_on() -> None:
    cloud = FakeCloud(response())
    run(cloud, {"manifests": ["m"]}, every=True)
    assert (cloud.requests[0]["manifests"], cloud.requests[0]["only"]) == (["m"], "all")


@pytest.mark.parametrize(
    "options",
    [{"files": None}, {"files": ["s3://b/k"], "to": "2026-11-20"}, {"files": ["s3://b/k"], "manifests": ["m"]}],
)
def test_anything_but_one_kind_of_selection_is_refused_with_examples(options: dict[str, Any]) -> None:
    cloud = FakeCloud(response())
    with pytest.raises(InvalidInputError, match="run 'hybrid-router reprocess s3://bucket/key', or 'hybrid-router"):
        run(cloud, options)
    assert cloud.requests == []
