"""`hybrid-router convert` publishes every file once: killed, without power, and named several times."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from cli.offline.convert import MAX_KEPT_FILES, convert_files
from tests.oracle.lake_proof import prove
from tests.unit.offline.conversions import answer, inputs, request


@pytest.mark.parametrize("step", range(12))
def test_a_call_that_is_killed_at_any_rename_is_completed_by_the_next(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    output, renames = tmp_path / "out", iter(range(step))
    replace = Path.replace

    class KilledError(Exception):
        pass

    def replace_until(path: Path, target: Path) -> Path:
        if next(renames, None) is None:
            raise KilledError
        return replace(path, target)

    with monkeypatch.context() as killed:
        killed.setattr(Path, "replace", replace_until)
        try:
            convert_files(request(folder, output=output))
        except KilledError:
            pass
        else:
            assert step > 8
    # When
    convert_files(request(folder, output=output))
    # Then
    assert prove(inputs(folder), output) == []


@pytest.mark.parametrize("kept", [2, MAX_KEPT_FILES])
def test_a_file_that_is_found_in_several_ways_is_converted_once(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr("cli.offline.convert.MAX_KEPT_FILES", kept)
    # Given a link to a file, a file inside of a named folder, and a folder in another
    (folder / "orders" / "link.ndjson").symlink_to(folder / "orders" / "a.ndjson")
    names = (folder, folder / "orders", folder / "orders" / "a.ndjson", folder / "orders" / ".." / "orders")
    # When
    convert_files(request(*names, output=tmp_path / "out"))
    # Then
    told = answer(capsys)
    assert (told["files"], told["skipped"], told["rows"]) == (5, 0, 2 + 1 + 4000)


def test_names_reach_the_disk_before_what_depends_on_them(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a machine that loses its power: a name is safe once its folder has been synchronized
    output = tmp_path / "out"
    steps: list[tuple[Any, ...]] = []
    replace, synchronize = Path.replace, os.fsync

    def recorded_replace(path: Path, target: Path) -> Path:
        steps.append(target.relative_to(output).parts)
        return replace(path, target)

    def recorded_fsync(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        steps.append(("fsync", path.relative_to(output).parts))
        synchronize(handle)

    with monkeypatch.context() as recorded:
        recorded.setattr(Path, "replace", recorded_replace)
        recorded.setattr(os, "fsync", recorded_fsync)
        # When one manifest is published
        convert_files(request(folder / "orders" / "a.ndjson", output=output))
    # Then its staged object, its commit, its object in the lake and its result are safe one after the other
    own = "_hybrid-router"
    (staged,) = (step for step in steps if step[0] == own and step[-1].endswith(".parquet"))
    (commit,) = (step for step in steps if step[:2] == (own, "commits"))
    (final,) = (step for step in steps if step[0] == "lake")
    (result,) = (step for step in steps if step[:2] == (own, "results"))
    for before, after in ((staged, commit), (commit, final), (final, result)):
        between = steps[steps.index(before) : steps.index(after)]
        for depth in range(len(before)):
            if depth or before is final:
                assert ("fsync", before[:depth]) in between, (before, depth)
    # And so are its bytes
    assert ("fsync", staged) in steps[steps.index(staged) : steps.index(commit)]
