"""Plots of a simulation: every file is there, and the same simulation gives the same SVG."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from simulate.plots import write_plots
from tests.unit.docs.pages import CHECKOUT
from tests.unit.simulate.world import MB, settings, simulated

NAMES = {
    f"{name}.{kind}"
    for name in ("backlog_stream", "backlog_batch", "dpus", "latency", "dollars")
    for kind in ("png", "svg")
}


def test_a_simulation_is_written_as_plots(tmp_path: Path) -> None:
    found = simulated(files=500, sizes=[{"bytes": 100 * MB}], urgent_share=0.1)
    first, second = (write_plots(found, tmp_path / name, "Europe/Berlin") for name in ("first", "second"))
    assert {path.name for path in first} == NAMES
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in first if path.suffix == ".png")
    assert (
        "Backlog of the batch lane, hybrid/glue"
        in next(path for path in first if path.name == "backlog_batch.svg").read_text()
    )
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_a_day_without_a_batch_lane_has_plots(tmp_path: Path) -> None:
    found = simulated(settings(peak={"hours": ["00:00-24:00"]}), files=10)
    assert {path.name for path in write_plots(found, tmp_path, "UTC")} == NAMES


def run(tmp_path: Path) -> tuple[int, str, BaseException | None]:
    profile = tmp_path / "profile.toml"
    profile.write_text("files = 10\nsizes = [{ bytes = 1000 }]\n", encoding="utf-8")
    options = ["--settings", str(CHECKOUT / "settings" / "dev.toml"), "--plots", str(tmp_path / "plots")]
    found = CliRunner().invoke(app, ["simulate", str(profile), *options])
    return found.exit_code, found.output, found.exception


def test_the_command_writes_plots(tmp_path: Path) -> None:
    code, output, _ = run(tmp_path)
    assert code == 0, output
    assert {path.name for path in (tmp_path / "plots").iterdir()} == NAMES
    assert "backlog_batch.svg" in output


def test_without_matplotlib_the_command_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.local_stage.local_packages.find_spec", lambda _: None)
    code, _, error = run(tmp_path)
    assert code == 1
    assert "run 'make setup'" in str(error)
