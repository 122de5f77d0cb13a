"""failures, status and explain about records that Firehose could not deliver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cli.errors import ExitCode, NotFoundError
from cli.inspect import failures
from cli.inspect.explain import print_explanation
from cli.inspect.failures import failures_document, print_failures
from cli.inspect.status import print_status_document, status_document
from tests.unit.cli.schemas import valid_json
from tests.unit.cli.stack_world import FakeServices, stack_of

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack
    from tests.unit.lake.world import World

FOLDER = "firehose-failed-records"
KIND = "processing-failed"
RECORDS = {"clicks": "web", "payments": "shop"}
"""Name -> dataset."""


@pytest.fixture
def stack(world: World) -> DeployedStack:
    return stack_of(world, FakeServices(), RECORDS)


def put(world: World, *keys: str) -> None:
    for key in keys:
        world.raw_s3.put_object(Bucket="input", Key=f"{FOLDER}/{key}", Body=b"{}\n")


def listed(stack: DeployedStack, *, dataset: str | None = None, limit: int = 10) -> tuple[list[dict[str, Any]], bool]:
    document = valid_json("failures", failures_document(stack, dataset, limit))
    return document["failures"], document["complete"]


def test_one_entry_for_each_kind_of_error_says_what_to_do(world: World, stack: DeployedStack) -> None:
    # Given
    put(world, f"clicks/{KIND}/2026/11/20/09/a", f"clicks/{KIND}/2026/11/20/10/b", "clicks/other/2026/11/20/09/c")
    # When
    (other, first), complete = sorted(listed(stack)[0], key=lambda item: item["files"]), listed(stack)[1]
    # Then
    assert (first["kind"], first["files"], first["bytes"], complete) == ("NOT_DELIVERED", 2, 6, True)
    assert first["uri"] == f"s3://input/{FOLDER}/clicks/{KIND}/"
    assert (first["dataset"], other["uri"]) == ("web", f"s3://input/{FOLDER}/clicks/other/")
    assert KIND in first["reason"]
    assert "docs/records.md" in first["advice"]
    assert first["command"] == f"aws s3 ls --recursive s3://input/{FOLDER}/clicks/{KIND}/"
    assert first["since"].startswith("20")


def test_a_dataset_has_its_own(world: World, stack: DeployedStack) -> None:
    put(world, f"clicks/{KIND}/a", f"payments/{KIND}/a")
    assert [item["uri"] for item in listed(stack, dataset="shop")[0]] == [f"s3://input/{FOLDER}/payments/{KIND}/"]
    # And: the ledger does not know the dataset, of which no record was delivered
    assert print_failures(stack, "shop", 10, as_json=True) == ExitCode.NOT_SO


def test_long_lists_are_cut(world: World, stack: DeployedStack, monkeypatch: pytest.MonkeyPatch) -> None:
    put(world, f"clicks/{KIND}/a", f"clicks/{KIND}/b", f"clicks/other/{KIND}/c", f"payments/{KIND}/a")
    assert [len(listed(stack, limit=2)[0]), listed(stack, limit=2)[1]] == [2, False]
    monkeypatch.setattr(failures, "MAX_LISTED", 1)
    entries, complete = listed(stack)
    assert ([item["files"] for item in entries], complete) == ([1], False)


def test_a_folder_marker_is_no_failure_and_what_a_person_has_put_there_is_named(
    world: World, stack: DeployedStack
) -> None:
    put(world, "", "clicks/", "readme.txt")
    (found,) = listed(stack)[0]
    assert (found["uri"], found["files"], found["dataset"]) == (f"s3://input/{FOLDER}/", 1, None)


def test_a_stage_without_records_lists_nothing(world: World) -> None:
    put(world, f"clicks/{KIND}/a")
    assert listed(stack_of(world, FakeServices())) == ([], True)


def test_the_page_of_failures(world: World, stack: DeployedStack, capsys: pytest.CaptureFixture[str]) -> None:
    put(world, f"clicks/{KIND}/a", f"clicks/{KIND}/b")
    assert print_failures(stack, None, 10, as_json=False) == ExitCode.NOT_SO
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"NOT_DELIVERED s3://input/{FOLDER}/clicks/{KIND}/ (2 files, 6 B) since ")
    assert lines[1] == f"  why   Firehose could not deliver records of clicks: {KIND}"
    assert [line[:8] for line in lines[2:]] == ["  do    ", "  run   ", "1 in all"]


def test_status_counts_the_files(world: World, stack: DeployedStack, capsys: pytest.CaptureFixture[str]) -> None:
    put(world, f"clicks/{KIND}/a", f"payments/{KIND}/a")
    document = status_document(stack, 10, world.now)
    assert document.failed_record_files == 2
    print_status_document(document, world.now, stack.options)
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("failures"))
    told = f"2 files of records that Firehose could not deliver: 'hybrid-router failures{stack.options}'"
    assert line.startswith(f"failures   {told}")


def test_explain_says_what_it_is_without_a_row_of_the_ledger(stack: DeployedStack) -> None:
    uri = f"s3://input/{FOLDER}/clicks/{KIND}/a"
    with pytest.raises(NotFoundError, match="records that Firehose could not deliver") as error:
        print_explanation(stack, uri, 10, as_json=False)
    assert "backfill" not in str(error.value)
