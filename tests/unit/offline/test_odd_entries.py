"""`hybrid-router convert` with files that change, folders that others have prepared, and entries that are not files."""

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from cli.errors import ExitCode
from lake.commit import PendingObject
from lake.errors import InvalidInputError
from lake.settings import Settings
from offline.output_folder import OutputFolder
from tests.unit.offline.conftest import GOOD, SMALL, Convert

OLD, NEW = b'{"a": "old"}\n' * 20_000, b'{"a": "new"}\n' * 20_000
MANIFEST = "20261120T093000" + "0" * 20


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(NEW)


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'{"a": "new"}\n')


def replace(path: Path) -> None:
    other = path.with_name(".other")
    other.write_bytes(NEW)
    shutil.copystat(path, other)
    other.replace(path)


def truncate(path: Path) -> None:
    os.truncate(path, len(OLD) // 2)


@pytest.mark.parametrize("change", [overwrite, append, truncate, replace])
@pytest.mark.parametrize("settings", [SMALL, Settings(stage="here")], ids=["many requests", "one request"])
@pytest.mark.parametrize("at", [0, len(OLD) // 2, len(OLD)])
def test_a_file_that_changes_while_it_is_read_is_never_published_as_a_mixture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, convert: Convert, change: Any, at: int, settings: Settings
) -> None:
    # Given a file, and a process that changes it after the first bytes were read
    path = tmp_path / "in" / "orders" / "a.ndjson"
    path.parent.mkdir(parents=True)
    path.write_bytes(OLD)
    os.utime(path, ns=(0, 1_760_000_000_000_000_000))
    waiting = [change]
    read = os.pread

    def short_read(handle: int, count: int, start: int) -> bytes:
        data = read(handle, min(count, max(1, at - start)) if waiting else count, start)
        if waiting and start + len(data) >= at:
            waiting.pop()(path)
        return data

    monkeypatch.setattr(os, "pread", short_read)
    # When
    code, summary = convert(tmp_path / "in", settings=settings)
    # Then it is either converted as a whole or named
    if summary["rows"]:
        assert (code, summary["rows"], change) == (ExitCode.OK, 20_000, replace)
    else:
        assert code == ExitCode.NEGATIVE
        reason = "it was changed while it was converted: wait until it is complete; the next call retries it"
        assert summary["refused"] == {str(path): reason}
    # And the next call converts the new version, unless the old one is whole and cannot be distinguished from it
    code, again = convert(tmp_path / "in", settings=settings)
    assert (code, again["files"]) == (ExitCode.OK, 0 if summary["rows"] and change is replace else 1)


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[Path]:
    """An empty folder; remains that pytest could not remove are removed."""
    folder = tmp_path / "orders"
    folder.mkdir()
    yield folder
    subprocess.run(["rm", "-rf", folder], check=True)


def commit_document(output: Path, **changes: Any) -> Path:
    """A commit document of a process that was killed before it published anything."""
    key = f"orders/date=2026-11-20/hour=09/{MANIFEST}-g1-00000.parquet"
    item = asdict(PendingObject("lake", key, "", "", "", 1, 1)) | changes.pop("object", {})
    body = {
        "format": 1,
        "manifest": MANIFEST,
        "partition": "orders#2026-11-20T09",
        "sources": [],
        "objects": [item],
        **changes,
    }
    commit = output / "_hybrid-router" / "results" / f"{changes.pop('name', MANIFEST)}.json"
    commit.parent.mkdir(parents=True, exist_ok=True)
    (output / "_hybrid-router" / "staging" / MANIFEST).mkdir(parents=True)
    commit.write_text(json.dumps(body))
    return commit


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "key").write_text("precious")
    return victim


@pytest.mark.parametrize(
    "changes",
    [
        {"manifest": "..", "name": "..", "objects": []},
        {"object": {"bucket": "../../../victim"}},
        {"object": {"key": "orders/date=2026-11-20/hour=09/../../../../victim/key"}},
        {
            "partition": "../../victim#2026-11-20T09",
            "object": {"key": f"../../victim/date=2026-11-20/hour=09/{MANIFEST}-g1-00000.parquet"},
        },
        {"object": {"key": ["orders"]}},
        {"objects": None},
        {"format": 2},
        {"name": "another"},
    ],
)
def test_a_commit_document_that_others_have_written_moves_and_deletes_nothing(
    tmp_path: Path, victim: Path, changes: dict[str, Any]
) -> None:
    output = tmp_path / "out"
    commit = commit_document(output, **changes)
    (output / "key").write_text("another folder's file")
    # When
    with pytest.raises(InvalidInputError, match="was not written by a conversion"), OutputFolder(output):
        pass
    # Then
    assert (victim / "key").read_text() == "precious"
    assert (output / "key").read_text() == "another folder's file"
    assert commit.exists()
    # And after its removal the folder can be used
    commit.unlink()
    with OutputFolder(output):
        pass


@pytest.mark.parametrize(
    "link", ["_hybrid-router", "_hybrid-router/staging", "_hybrid-router/results", "lake", "lake/orders"]
)
def test_a_link_out_of_the_output_is_refused(tmp_path: Path, victim: Path, link: str) -> None:
    output = tmp_path / "out"
    output.mkdir()
    if not link.startswith("_"):
        commit_document(output)
    (output / link).parent.mkdir(parents=True, exist_ok=True)
    (output / link).symlink_to(victim)
    (victim / MANIFEST).mkdir()
    (victim / MANIFEST / "precious").touch()
    # When
    with pytest.raises(InvalidInputError, match="is a link"), OutputFolder(output):
        pass
    # Then
    assert sorted(path.name for path in victim.iterdir()) == [MANIFEST, "key"]
    assert (victim / MANIFEST / "precious").exists()


def test_a_lock_that_is_a_link_empties_no_file(tmp_path: Path, victim: Path) -> None:
    lock = tmp_path / "out" / "_hybrid-router" / "lock"
    lock.parent.mkdir(parents=True)
    lock.symlink_to(victim / "key")
    with pytest.raises(InvalidInputError, match="cannot be used"), OutputFolder(tmp_path / "out"):
        pass
    assert (victim / "key").read_text() == "precious"


def long_path(folder: Path) -> None:
    """A path of more than 4,096 bytes."""
    with chdir(folder):
        for _ in range(20):
            Path("d" * 250).mkdir()
            os.chdir("d" * 250)
        Path("long.ndjson").write_bytes(GOOD)


def link_to(target: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "link.ndjson").symlink_to(target)


@pytest.mark.parametrize(
    ("make", "name", "reason"),
    [
        (long_path, "ddd", "File name too long"),
        (lambda folder: os.mkfifo(folder / "pipe.ndjson"), "pipe.ndjson", "is not a regular file"),
        (link_to(__file__), "link.ndjson", "outside of the folder"),
        (link_to("nothing"), "link.ndjson", "No such file"),
        (link_to("link.ndjson"), "link.ndjson", "Too many levels of symbolic links"),
    ],
)
def test_an_odd_entry_is_named_and_the_rest_is_converted(
    orders: Path, convert: Convert, make: Callable[[Path], None], name: str, reason: str
) -> None:
    (orders / "a.ndjson").write_bytes(GOOD)
    make(orders)
    # When
    code, summary = convert(orders)
    # Then
    assert (code, summary["files"], summary["rows"]) == (ExitCode.NEGATIVE, 1, 2)
    ((path, message),) = summary["refused"].items()
    assert name in path
    assert reason in message


def test_a_pipe_of_the_shell_that_is_named_as_a_file_is_named(convert: Convert) -> None:
    # Given `hybrid-router convert <(zcat day.ndjson.gz)`
    reader, writer = os.pipe()
    # When
    code, summary = convert(f"/dev/fd/{reader}", dataset="orders")
    os.close(reader)
    os.close(writer)
    # Then
    assert code == ExitCode.NEGATIVE
    assert ["write its content to a file" in message for message in summary["refused"].values()] == [True]


def test_folders_nested_deeper_than_calls_are_converted(orders: Path, tmp_path: Path, convert: Convert) -> None:
    path = orders
    for _ in range(1000):
        path /= "d"
        path.mkdir()
    (path / "deep.ndjson").write_bytes(GOOD)
    code, summary = convert(orders)
    assert (code, summary["rows"]) == (ExitCode.OK, 2)


def test_a_time_of_change_that_is_not_a_date_is_named(
    orders: Path, monkeypatch: pytest.MonkeyPatch, convert: Convert
) -> None:
    # Given a time that XFS and tmpfs can keep
    (orders / "a.ndjson").write_bytes(GOOD)
    (orders / "odd.ndjson").write_bytes(GOOD)
    lstat = os.lstat

    def odd_time(path: str, **options: Any) -> os.stat_result:
        state = lstat(path, **options)
        return os.stat_result([*state[:7], *3 * [10**13]]) if str(path).endswith("odd.ndjson") else state

    monkeypatch.setattr(os, "lstat", odd_time)
    # When
    code, summary = convert(orders)
    # Then
    assert (code, summary["files"]) == (ExitCode.NEGATIVE, 1)
    ((path, message),) = summary["refused"].items()
    assert path.endswith("odd.ndjson")
    assert "set it, for example with 'touch'" in message


def test_a_full_disk_is_named_and_the_next_call_continues(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, convert: Convert
) -> None:
    # Given a disk that is full when the second group is published
    output, synchronize, calls = tmp_path / "out", os.fsync, []

    def full(handle: int) -> None:
        calls.append(handle)
        if len(calls) > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        synchronize(handle)

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        code, summary = convert(folder)
    # Then
    assert code == ExitCode.NEGATIVE
    assert str(output) in summary["stopped"]
    assert "No space left on device: remove the cause and convert again" in summary["stopped"]
    # When there is space again
    _, again = convert(folder)
    # Then
    assert again["stopped"] is None
    assert again["files"] + again["skipped"] == 5
