"""`hybrid-router quarantine ls`, `show` and `export`: what they select and print; lines with their neighbours."""

import gzip
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cli.errors import ExitCode
from cli.quarantine import listing
from cli.quarantine.listing import quarantine_ls_command, quarantine_show_command
from cli.quarantine.records import RecordSelection
from cli.quarantine.repair import line_digest, origins_file, quarantine_export_command, read_origins
from lake.commit import PendingObject
from lake.errors import InvalidInputError, TerminalError
from lake.layout import quarantine_key
from lake.ledger import ManifestRow
from lake.manifest import Partition
from lake.settings import Settings, parse_settings
from lake.texts import with_options
from router.requests.resubmit import resubmit
from router.services import Services
from tests.unit.cli.conftest import Answered, Printed
from tests.unit.cli.stack_world import FakeServices, stack_of
from tests.unit.lake.world import PARTITION, TOTALS, World


class Stack(World):
    """A deployed stack whose function ``resubmit`` runs in this process."""

    convert: Mapping[str, Any] = MappingProxyType({})

    def settings(self) -> Settings:
        return parse_settings({"stage": "test", "convert": dict(self.convert)})

    def services(self) -> Services:
        settings, none = self.settings(), None
        return Services(settings, self.resources, self.ledger, self.s3, none, lambda: datetime.now(UTC))  # type: ignore[arg-type]

    def invoke(self, name: str, event: dict[str, Any]) -> dict[str, Any]:
        assert name == "resubmit"
        return resubmit(event, self.services())

    def runnable(self, text: str) -> str:
        return with_options(text, " --stage dev")


def line_of(text: str, offset: int, name: str = "a", **changes: Any) -> dict[str, Any]:
    """The record of a rejected line of the file ``name``."""
    record = {"kind": "line", "source": f"s3://input/orders/{name}", "version": "v1", "offset": offset}
    return {**record, "length": len(text), "reason": "not JSON", "line": text, **changes}


def converted(
    world: World, records: Iterable[dict[str, Any]], *names: str, partition: Partition = PARTITION
) -> ManifestRow:
    """A DONE manifest of these files, with these records in the quarantine."""
    world.ledger.datasets.admit({partition.dataset: ""}, 0)
    row = world.arrived(world.manifest(*(names or ("a",)), partition=partition))
    return published(world, row, records)


def published(
    world: World, row: ManifestRow, records: Iterable[dict[str, Any]], kept: Iterable[PendingObject] = ()
) -> ManifestRow:
    """The QUEUED manifest, published with these records, and with objects of an earlier generation."""
    body = "".join(json.dumps(record) + "\n" for record in records).encode()
    key = quarantine_key(row.partition, row.id, row.generation, 0)
    world.raw_s3.put_object(Bucket="quarantine", Key=key, Body=body)
    objects = (*kept, PendingObject("quarantine", key, "", "", "", len(body), 1))
    world.ledger.manifests.finish(world.committed(world.claimed(row), quarantine=objects), TOTALS, world.now)
    return world.row(row.id)


LATER = Partition("orders", "2026-11-20", 10)
EVENING = Partition("orders", "2026-11-20", 20)
GONE = "gone, then run: hybrid-router reprocess s3://input/orders/b"
GONE_HERE = f"{GONE} --stage dev"
WHOLE = {"kind": "file", "source": "s3://input/orders/b", "version": "v1", "offset": 0, "length": 9, "reason": GONE}


@pytest.fixture
def filled(world: World) -> World:
    converted(world, [line_of("\x1b[2J", 5), line_of("[1]", 9, reason="not an object"), WHOLE], "a", "b")
    counted = {**line_of("", 0, "c"), "kind": "lines", "count": 7, "length": 100}
    converted(world, [counted], "c", partition=LATER)
    world.__class__ = Stack
    return world


Listed = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def listed(filled: World, answered: Answered) -> Listed:
    """Lists the groups of a selection."""

    def call(by: str = "hour", **selected: str) -> list[tuple[Any, ...]]:
        found = answered(quarantine_ls_command, filled, RecordSelection(**selected), by)
        return [tuple(group.values()) for group in found["groups"]]

    return call


def test_ls_counts_lines_and_files_by_hour_and_reason(listed: Listed) -> None:
    assert listed() == [
        ("orders", "2026-11-20T09", GONE_HERE, 0, 0, 1),
        ("orders", "2026-11-20T09", "not JSON", 1, 0, 0),
        ("orders", "2026-11-20T09", "not an object", 1, 0, 0),
        ("orders", "2026-11-20T10", "not JSON", 7, 0, 0),
    ]
    assert listed(by="reason")[1] == ("not JSON", 8, 0, 0)


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        ({"first": "2026-11-20T10"}, ["not JSON"]),
        ({"last": "2026-11-20T09", "reason": "not "}, ["not JSON", "not an object"]),
        ({"dataset": "orders", "first": "2026-11-20T09", "last": "2026-11-20T09", "reason": "gone"}, [GONE_HERE]),
        ({"file": "s3://input/orders/b"}, [GONE_HERE]),
        ({"file": "s3://input/orders/nowhere"}, []),
        ({"first": "2026-11-21"}, []),
    ],
)
def test_ls_selects_by_dataset_hour_reason_and_file(
    listed: Listed, options: dict[str, str], reasons: list[str]
) -> None:
    assert [group[2] for group in listed(**options)] == reasons


@pytest.mark.parametrize("is_kept", [False, True])
def test_the_published_generation_counts_with_what_it_keeps_of_an_earlier_one(
    filled: World, listed: Listed, tmp_path: Path, is_kept: bool
) -> None:
    # Given a reprocessed hour, and the rejected lines of its first generation, which are still there
    row = converted(filled, [line_of("{", 5)], "d", partition=EVENING)
    replaced = json.dumps(line_of("{", 7)).encode()
    filled.raw_s3.put_object(Bucket="quarantine", Key=quarantine_key(EVENING, row.id, 1, 1), Body=replaced)
    filled.ledger.manifests.force(row, filled.now, "request")
    earlier = PendingObject("quarantine", quarantine_key(EVENING, row.id, 1, 0), "", "", "", 1, 1)
    published(filled, filled.row(row.id), [line_of("[1]", 9, reason="not an object")], [earlier] if is_kept else [])
    # When, Then: only lines of the second generation are counted
    found = listed(first=EVENING.stamp)
    assert [reason for _, _, reason, *_ in found] == ["not JSON", "not an object"][not is_kept :]
    quarantine_export_command(
        stack_of(filled, FakeServices()), tmp_path / "lines", RecordSelection(first=EVENING.stamp)
    )
    assert {origin.generation for origin in read_origins(tmp_path / "lines")} == {2}


def test_show_prints_place_reason_and_line(filled: World, printed: Printed) -> None:
    output = printed(quarantine_show_command, filled, code=ExitCode.OK).splitlines()
    assert output[:3] == [
        "s3://input/orders/a  version v1  hour 2026-11-20T09",
        "  byte 5, 4 bytes: not JSON",
        "  \\x1b[2J",
    ]
    assert f"  the whole file: {GONE_HERE}" in output
    assert output[-1] == "  7 lines from byte 0 to 100: not JSON; only counted"


@pytest.mark.parametrize("damage", [b"{}\n", b'{"kind": "li'])
def test_an_object_that_is_damaged_is_named(filled: World, tmp_path: Path, damage: bytes) -> None:
    key, *_ = filled.keys("quarantine")
    record = filled.raw_s3.get_object(Bucket="quarantine", Key=key)["Body"].read().splitlines(keepends=True)[0]
    filled.raw_s3.put_object(Bucket="quarantine", Key=key, Body=record + damage)
    stack = stack_of(filled, FakeServices())
    for command in (
        lambda: quarantine_ls_command(stack),
        lambda: quarantine_show_command(stack, context=0),
        lambda: quarantine_export_command(stack, tmp_path / "lines.ndjson"),
    ):
        with pytest.raises(TerminalError, match=f"record 2 of s3://quarantine/{key} is damaged .* run 'hybrid-router"):
            command()
    assert not list(tmp_path.iterdir())


def test_export_writes_the_bytes_of_each_line_and_where_it_is_from(filled: World, tmp_path: Path) -> None:
    # Given: a line that is also not valid UTF-8
    raw = line_of("", 20, "f", line_base64="/w==")
    del raw["line"]
    row = converted(filled, [raw], "f", partition=Partition("orders", "2026-11-20", 8))
    target = tmp_path / "repair.ndjson"
    # When
    assert quarantine_export_command(stack_of(filled, FakeServices()), target).code == ExitCode.OK
    # Then
    assert target.read_bytes() == b"\xff\n\x1b[2J\n[1]\n"
    first, second, third = read_origins(target)
    assert (first.partition.hour, first.manifest, first.generation) == (8, row.id, 1)
    assert (first.source, first.version, first.offset) == ("s3://input/orders/f", "v1", 20)
    assert first.digest == line_digest(b"\xff")
    assert (second.partition, second.offset, third.reason) == (PARTITION, 5, "not an object")


def test_export_overwrites_nothing_and_leaves_no_empty_file(
    filled: Any, tmp_path: Path, answered: Answered, printed: Printed
) -> None:
    target = tmp_path / "repair.ndjson"
    counted: Any = partial(quarantine_export_command, filled, target, RecordSelection(first="2026-11-20T10"))
    body = answered(counted, code=ExitCode.NEGATIVE)
    assert (body["lines"], body["not_kept"], body["files"], body["complete"]) == (0, 7, 0, True)
    assert list(tmp_path.iterdir()) == []
    # A repaired file under its old key would duplicate rows.
    assert "otherwise put only such lines, repaired, under a new key" in printed(counted)
    origins_file(target).touch()
    with pytest.raises(InvalidInputError, match=r"repair\.ndjson\.origins exists: pass the name of a new file"):
        counted()


BODY = b'{"n":1}\n{"n":2}\n{\n{"n":4}\n[5]\n{"n":6}\n'
REJECTS = {"{": BODY.index(b"{\n"), "[5]": BODY.index(b"[5]")}


Show = Callable[[int], list[str]]


@pytest.fixture
def show(world: Any, printed: Printed) -> Show:
    """The output of ``show`` for each line, with this number of lines around it."""
    shown = partial(printed, quarantine_show_command, world)
    return lambda context: [line.strip() for line in shown(context=context).splitlines()]


def quarantined(world: World, stored: bytes, **offsets: int) -> None:
    """The input file ``a`` and the records of its lines at these offsets."""
    etag = world.raw_s3.put_object(Bucket="input", Key="orders/a", Body=stored)["ETag"].strip('"')
    converted(world, [line_of(text, offset, version=f"etag:{etag}") for text, offset in offsets.items()], "a")


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_line_is_shown_with_its_number_and_neighbours(
    world: World, show: Show, compress: Callable[[bytes], bytes]
) -> None:
    quarantined(world, compress(BODY), **REJECTS)
    output = show(2)
    assert output[2:7] == ['1- {"n":1}', '2- {"n":2}', "3: {", '4- {"n":4}', "5- [5]"]
    assert output[9:] == ["3- {", '4- {"n":4}', "5: [5]", '6- {"n":6}']


def test_json_has_numbers_and_neighbours(world: World, answered: Answered) -> None:
    # Given a line after a byte order mark, and a neighbour that is not valid UTF-8
    quarantined(world, b'\xef\xbb\xbf{\n{"n":"\xff"}\n', **{"{": 3})
    (record,) = answered(quarantine_show_command, world, context=1)["records"]
    assert (record["line_number"], record["before"]) == (1, [])
    assert record["after"] == [{"line_number": 2, "length": 9, "line_base64": "eyJuIjoi/yJ9"}]


@pytest.mark.parametrize("has_versions", [False, True])
def test_a_replaced_file_has_context_only_if_the_bucket_got_versions_before(
    world: World, show: Show, monkeypatch: pytest.MonkeyPatch, *, has_versions: bool
) -> None:
    quarantined(world, BODY, **REJECTS)
    if has_versions:
        world.raw_s3.put_bucket_versioning(Bucket="input", VersioningConfiguration={"Status": "Enabled"})
    world.raw_s3.put_object(Bucket="input", Key="orders/a", Body=b"other")
    gone = ["{", "(no line number: the file cannot be read: S3 answers PreconditionFailed)"]
    output = show(0)
    assert "3: {" in output if has_versions else output[2:4] == gone
    # And s3:GetObject alone, without s3:GetObjectVersion, shows what it showed before the bucket had versions
    read = world.raw_s3.get_object

    def get_object(**request: Any) -> Any:
        if "VersionId" in request:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": ""}}, "GetObject")
        return read(**request)

    monkeypatch.setattr(world.raw_s3, "get_object", get_object)
    assert show(0)[2:4] == gone


def test_what_is_read_of_a_file_is_bounded(world: World, show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MAX_READ_BYTES", REJECTS["{"])
    quarantined(world, BODY, **REJECTS)
    output = show(0)
    assert output[2] == "3: {"
    assert output[5:] == ["[5]", "(no line number: it is after the first 0 MiB of its file)"]


def test_lines_before_the_damage_keep_their_numbers(world: World, show: Show) -> None:
    # Given a gzip file of two members; the second one is truncated
    stored = gzip.compress(BODY[: REJECTS["[5]"]]) + gzip.compress(BODY[REJECTS["[5]"] :])[:-20]
    quarantined(world, stored, **REJECTS)
    output = show(1)
    assert "3: {" in output
    assert output[-1].startswith("(no line number: the file cannot be read: ")
