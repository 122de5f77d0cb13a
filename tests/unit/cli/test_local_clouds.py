"""Local clouds: which ones run, what others have left, what a machine lacks; and which files the demo sends."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.cost.sizing import calibrate_command
from cli.demo.run import demo_command, demo_settings
from cli.demo.sample_data import user_files
from cli.errors import NotReachableError
from cli.local_clouds import (
    LocalStage,
    local_config,
    local_down_command,
    local_ls_command,
    local_state,
    local_up_command,
    stages,
)
from cli.main import app
from cli.terminal import END_SIGNALS, ended_by_signal
from lake.errors import InvalidInputError, TerminalError
from local.isolation import AccessKey
from tests.unit.cli.conftest import Answered, Printed


@pytest.mark.parametrize("command", [["demo"], ["local", "up"]])
def test_without_java_a_command_ends_before_it_begins(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, command)
    assert isinstance(found.exception, NotReachableError)
    assert "Java is missing: install a JRE of version 17 or newer" in str(found.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_sample_of_one_tiny_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.ndjson"
    file.write_bytes(b'{"a": 1}\n')
    with pytest.raises(InvalidInputError, match="the files have 9 bytes together, too few to measure"):
        calibrate_command([file], goal_seconds=60, cores=1)


ENDED = 2**22 + 1
"""More than any process id of Linux."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all local clouds, which does not exist yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return local_state()


class FakeCloud:
    """A local cloud that ends by a signal as soon as it waits for one."""

    def __init__(self, folder: Path, number: int) -> None:
        self.endpoint, self.access_key, self.logs_dir = "http://127.0.0.1:1", AccessKey("a", "b"), folder / "logs"
        self.logs_dir.mkdir(parents=True)
        self._signal = number

    def __enter__(self) -> "FakeCloud":
        return self

    def __exit__(self, ended_by: type[BaseException] | None, *_: object) -> None:
        # A second signal while it ends; not if an assertion has failed
        if ended_by is KeyboardInterrupt:
            os.kill(os.getpid(), self._signal)

    def deploy(self, _template: Path) -> dict[str, str]:
        return {"LakeBucket": "lake"}

    def wait(self) -> None:
        assert oct((self.logs_dir.parents[1] / "dev.aws").stat().st_mode & 0o777) == "0o600"
        assert LocalStage(local_state(), "dev").owner() == os.getpid()
        os.kill(os.getpid(), self._signal)


def run_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, **options: bool) -> None:
    settings = tmp_path / "dev.toml"
    settings.write_text('stage = "dev"')
    monkeypatch.setattr("local.cloud.LocalCloud.start", lambda folder, log: FakeCloud(folder, number))
    monkeypatch.setattr("infra.synth.synth", lambda _settings, out: out)
    with pytest.raises(KeyboardInterrupt):
        local_up_command(settings, **options)


def leave(folder: Path, stage: str) -> Path:
    """The files that a killed cloud leaves."""
    cloud = folder / f"{stage}-{ENDED}"
    cloud.mkdir(parents=True)
    (folder / f"{stage}.aws").touch()
    (folder / f"{stage}.lock").write_text(str(ENDED))
    return cloud


@pytest.fixture(params=END_SIGNALS)
def number(request: pytest.FixtureRequest) -> Iterator[int]:
    """A signal with its default action; under nohup a process starts with an ignored one."""
    before = signal.signal(request.param, signal.SIG_DFL)
    yield request.param
    signal.signal(request.param, before)


def test_an_ignored_signal_stays_ignored_as_under_nohup(number: int) -> None:
    signal.signal(number, signal.SIG_IGN)
    with ended_by_signal():
        signal.raise_signal(number)
    assert signal.getsignal(number) == signal.SIG_IGN


def test_a_cloud_that_is_ended_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    before = [signal.getsignal(each) for each in END_SIGNALS]
    run_up(tmp_path, monkeypatch, number)
    assert [path.name for path in folder.iterdir()] == ["dev.lock"]
    output = capsys.readouterr().out
    assert f"Ctrl-C ends everything and deletes {folder}/dev-{os.getpid()}" in output
    assert "\nendpoint  http://127.0.0.1:1   (its access key is in " in output
    assert "\nLakeBucket             lake\nlogs      " in output
    assert f"\nAWS CLI   AWS_CONFIG_FILE={folder}/dev.aws aws --profile hybrid-router-local\n" in output
    assert [signal.getsignal(each) for each in END_SIGNALS] == before


def test_a_cloud_is_kept_on_request(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_up(tmp_path, monkeypatch, signal.SIGTERM, keep=True)
    (kept,) = folder.glob("*-kept")
    assert (kept.name, (kept / "logs").is_dir()) == (f"dev-{os.getpid()}-kept", True)
    assert f"buckets and logs are kept in {kept}: delete it" in capsys.readouterr().out
    # And the next cloud of the stage leaves it running.
    with LocalStage(folder, "dev").claimed():
        assert kept.is_dir()


def test_a_second_cloud_of_a_stage_is_refused_and_the_first_named(folder: Path) -> None:
    stage = LocalStage(folder, "dev")
    with stage.claimed():
        assert stage.owner() == os.getpid()
        with (
            pytest.raises(TerminalError, match=rf"process {os.getpid()}\).*local down --stage dev"),
            stage.claimed(),
        ):
            pass
        # A cloud of another stage is not stopped.
        with LocalStage(folder, "prod").claimed():
            assert [item.stage for item in stages(folder)] == ["dev", "prod"]
    assert stage.owner() is None
    assert (stages(folder), stage.lock_file.read_text()) == ([], "")


def test_down_asks_the_process_to_end_and_waits_for_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    signals: list[tuple[int, int]] = []
    stage, claim = LocalStage(folder, "dev"), ExitStack()
    claim.enter_context(stage.claimed())
    # Given a cloud that is about to write its process id
    stage.lock_file.write_text("")
    Timer(0.1, stage.lock_file.write_text, [str(os.getpid())]).start()

    def kill(pid: int, number: int) -> None:
        signals.append((pid, number))
        Timer(0.1, claim.close).start()

    monkeypatch.setattr("os.kill", kill)
    # When
    local_down_command("dev")
    # Then
    assert signals == [(os.getpid(), signal.SIGTERM)]
    assert f"if it hangs, run 'kill -9 {os.getpid()}'" in capsys.readouterr().err


def test_down_removes_what_a_killed_cloud_has_left(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leave(folder, "dev")
    leave(folder, "dev_two")
    local_down_command("dev")
    assert [item.stage for item in stages(folder)] == ["dev_two"]
    assert capsys.readouterr().out.endswith("the files of a killed one are deleted\n")
    # And a path is not a valid stage
    with pytest.raises(InvalidInputError, match="stage"):
        local_down_command("../elsewhere")


def test_clouds_are_listed(folder: Path, answered: Answered, printed: Printed) -> None:
    assert printed(local_ls_command) == "no local cloud is running on this machine\n"
    leave(folder, "left")
    with LocalStage(folder, "dev").claimed():
        (folder / "dev.aws").write_text(local_config("http://127.0.0.1:8", AccessKey("a", "b"), folder))
        lines: Any = printed(local_ls_command).splitlines()
        (running, _left) = answered(local_ls_command)["clouds"]
    assert running["pid"] == os.getpid()
    assert lines[0].split(maxsplit=1) == ["dev", f"process {os.getpid()}, http://127.0.0.1:8"]
    assert "run 'hybrid-router local down --stage left'" in lines[1]


def test_files_are_taken_by_suffix_in_any_case_and_named_by_their_folders(tmp_path: Path) -> None:
    # Given files in folders and at the top, one with another suffix, and two folders with one name
    data = tmp_path / "My Data"
    for name in (
        "Orders/A.NDJSON",
        "Orders/b.json.bz2",
        "web-logs/c.jsonl.Zst",
        "top.json",
        "web_logs/d.json",
        "n.csv",
    ):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_bytes(b"")
    # When
    files, skipped = user_files(data, demo_settings().datasets, tmp_path / "out")
    # Then each is in the dataset of its folder, under its own name
    assert [(file.key, file.dataset) for file in files] == [
        ("Orders/urgent/A.NDJSON", "orders"),
        ("Orders/b.json.bz2", "orders"),
        ("My Data/top.json", "my_data"),
        ("web-logs/urgent/c.jsonl.Zst", "web_logs"),
    ]
    assert skipped[data / "n.csv"] == "not an NDJSON suffix"
    assert "would share the dataset web_logs, which the folder 'web-logs' uses" in skipped[data / "web_logs/d.json"]


@pytest.mark.parametrize("name", ["not\udcff.ndjson", "two\nlines.ndjson", "/".join(["d" * 250] * 5) + "/a.ndjson"])
def test_a_path_that_cannot_be_a_key_is_skipped(tmp_path: Path, name: str) -> None:
    data = tmp_path / "orders"
    for path in (data / name, data / "a.ndjson"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    files, skipped = user_files(data, demo_settings().datasets, tmp_path / "out")
    assert [file.key for file in files] == ["orders/urgent/a.ndjson"]
    assert [reason for path, reason in skipped.items() if path == data / name and "rename it" in reason]


def test_why_no_file_can_be_sent_is_named(tmp_path: Path) -> None:
    # Given a folder whose name is not a valid dataset
    data = tmp_path / "\u65e5\u672c"
    data.mkdir()
    (data / "a.ndjson").write_bytes(b"")
    (data / "NOTES.txt").write_bytes(b"")
    with pytest.raises(InvalidInputError, match=r"a\.ndjson: the folder .* cannot become a dataset name"):
        user_files(data, demo_settings().datasets, tmp_path / "out")
    # And a pipe, which is not a file
    os.mkfifo(tmp_path / "b.ndjson")
    with pytest.raises(InvalidInputError, match="holds no file that can be sent: pass one that ends in"):
        user_files(tmp_path / "b.ndjson", demo_settings().datasets, tmp_path / "out")


def test_what_an_earlier_demo_has_written_is_not_input(tmp_path: Path) -> None:
    output = tmp_path / "out"
    for path in (tmp_path / "orders" / "a.ndjson", output / "quarantine" / "orders" / "b.jsonl"):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"")
    files, skipped = user_files(tmp_path, demo_settings().datasets, output)
    assert ([file.key for file in files], skipped) == (["orders/urgent/a.ndjson"], {})
    for data in (output, output / "quarantine"):
        with pytest.raises(InvalidInputError, match="is in the output folder"):
            user_files(data, demo_settings().datasets, output)


def test_the_output_of_a_conversion_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    with pytest.raises(InvalidInputError, match="is not empty, and the demo replaces what is there"):
        demo_command(None, tmp_path)
    with pytest.raises(InvalidInputError, match="does not exist"):
        demo_command(tmp_path / "nothing", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]
