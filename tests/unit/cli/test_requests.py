"""`hybrid-router promote` and `reprocess`: their requests, their output, and their exit codes."""

from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from cli.change.requests import UNPROMOTED_LABELS, UNQUEUED_LABELS, promote_files, reprocess_manifests
from cli.deployed_stack import DeployedStack, FunctionFailedError
from lake.errors import InvalidInputError, UnknownDatasetError
from router.requests.promote import PROMOTE_COUNTS
from router.requests.reprocess import REPROCESS_COUNTS
from tests.unit.cli.stack_world import FakeLambda, stack_with

FILES: dict[str, Any] = {"uris": ["s3://b/k"]}
RANGE = {"dataset": "orders", "from": "2026-11-20T08", "to": "2026-11-20T09"}
MESSAGES = {"dryRun": False, "messages": [], "omitted": 0}


def promoted(**changes: Any) -> dict[str, Any]:
    return {**MESSAGES, **dict.fromkeys(PROMOTE_COUNTS, 0), **changes}


def queued(**changes: Any) -> dict[str, Any]:
    return {**MESSAGES, "token": None, "selection": None, **dict.fromkeys(REPROCESS_COUNTS, 0), **changes}


HOURS = {"dataset": "orders", "first": "2026-11-20T08", "last": "2026-11-20T09"}


def reprocess(functions: FakeLambda, **options: Any) -> int:
    return reprocess_manifests(stack_with(functions), **options or FILES)


def test_every_count_has_a_label() -> None:
    assert {"promoted", "manifests", *UNPROMOTED_LABELS} == set(PROMOTE_COUNTS)
    assert {"queued", "files", "bytes", *UNQUEUED_LABELS} == set(REPROCESS_COUNTS)


@pytest.mark.parametrize(
    ("command", "body", "code", "summary"),
    [
        (promote_files, promoted(promoted=1, manifests=1, unknown=1), 0, "promoted: 1 (new manifests: 1), 1 unknown"),
        (promote_files, promoted(dryRun=True, promoted=1), 0, "dry run, nothing was done; to be promoted: 1"),
        (promote_files, promoted(tooLate=1, unknown=1), 0, "promoted: 0, 1 too late, 1 unknown"),
        (promote_files, promoted(unknown=2, ignored=1), 1, "promoted: 0, 1 ignored, 2 unknown"),
        (promote_files, promoted(), 0, "nothing to promote: no file of this selection is queued"),
        (reprocess_manifests, queued(queued=2, files=3, bytes=10**9), 0, "queued again: 2 manifests (3 files, 1 GB)"),
        (reprocess_manifests, queued(dryRun=True, queued=1), 0, "dry run, nothing was done; to be queued again: 1 man"),
        (reprocess_manifests, queued(open=2, unusable=1), 0, "queued again: 0 manifests, 2 still open, 1 unusable"),
        (reprocess_manifests, queued(ignored=1, unusable=1), 1, "queued again: 0 manifests, 1 ignored, 1 unusable"),
        (reprocess_manifests, queued(), 0, "nothing to reprocess: no manifest of this selection has ended"),
    ],
)
def test_a_request_ends_with_1_only_if_nothing_that_was_named_can_be_converted(
    command: Any, body: dict[str, Any], code: int, summary: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(stack_with(FakeLambda(body)), **FILES) == code
    assert capsys.readouterr().out.startswith(summary)


def test_only_the_given_options_are_sent_and_every_message_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    functions = FakeLambda(promoted(promoted=2, manifests=1, messages=["one", "two"], omitted=1234))
    assert promote_files(stack_with(functions), dataset="orders", first="2026-11-20", dry_run=True) == 0
    assert functions.requests == [("promote", {"dataset": "orders", "from": "2026-11-20", "dryRun": True})]
    assert capsys.readouterr().out.splitlines()[:3] == ["one", "two", "... and 1,234 more"]


@pytest.mark.parametrize(
    ("body", "error", "sentence"),
    [
        ({"refused": "set this", "error": "InvalidInputError"}, InvalidInputError, "set this"),
        ({"refused": "set this", "error": "UnknownDatasetError"}, UnknownDatasetError, "set this"),
        (
            {"errorType": "ClientError", "errorMessage": "set this"},
            FunctionFailedError,
            "promote failed: set this; see its log",
        ),
    ],
)
def test_a_refusal_of_the_function_is_passed_on_verbatim(
    body: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as caught:
        promote_files(stack_with(FakeLambda(body, error="errorType" in body)), **FILES)
    assert (type(caught.value), str(caught.value)) == (error, sentence)


@pytest.mark.parametrize("options", [{"uris": []}, {**FILES, "last": "2026-11-20"}])
@pytest.mark.parametrize("command", [promote_files, reprocess_manifests])
def test_anything_but_one_kind_of_target_is_refused(command: Any, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"run 'hybrid-router (promote|reprocess) s3://bucket/key', or"):
        command(stack_with(FakeLambda({})), **options)


def test_all_pages_are_one_request(capsys: pytest.CaptureFixture[str]) -> None:
    # Given: a function that needs two invocations
    first = queued(queued=1, files=1, token="t", messages=["one"])
    functions = FakeLambda(first, queued(queued=2, files=2, selection=RANGE, messages=["two"]))
    # When
    assert reprocess(functions, **HOURS) == 0
    # Then
    (_, request), (_, further) = functions.requests
    assert request == {**RANGE, "only": "failed", "dryRun": False, "request": request["request"]}
    assert further == {**request, "token": "t"}
    assert capsys.readouterr().out.splitlines() == [
        "one",
        "so far: queued again: 1 manifest (1 file, 0 B)",
        "two",
        "queued again: 2 manifests (2 files, 0 B)",
        "the next overnight run converts them",
    ]


@pytest.mark.parametrize(
    ("body", "dry_run", "started"),
    [
        (queued(queued=1, selection=RANGE), False, [RANGE]),
        (queued(queued=1, selection=RANGE), True, []),
        (queued(open=1), False, []),
    ],
)
def test_now_starts_overnight_for_the_hours_that_were_queued(
    body: dict[str, Any], dry_run: bool, started: list[Any]
) -> None:
    functions = FakeLambda(body)
    assert reprocess(functions, manifest=["m"], now=True, dry_run=dry_run, every=True) == 0
    assert functions.started == started
    assert functions.requests[0][1]["only"] == "all"


def test_what_was_queued_is_printed_also_if_overnight_may_not_be_started(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    denial = ClientError({"Error": {"Code": "AccessDeniedException", "Message": ""}}, "StartExecution")
    monkeypatch.setattr(DeployedStack, "start", Mock(side_effect=denial))
    with pytest.raises(ClientError):
        reprocess(FakeLambda(queued(queued=1, files=1, selection=RANGE)), manifest=["m"], now=True)
    expected = ["queued again: 1 manifest (1 file, 0 B)", "the next overnight run converts them"]
    assert capsys.readouterr().out.splitlines() == expected
