"""A calibration as plots: a line for each kind of files."""

from pathlib import Path
from xml.etree import ElementTree as ET

from calibrate.measure import Measurement
from calibrate.plots import calibration_plots
from simulate.figures import FORMATS, write_figures

MB = 1_000_000


def measurement(size: int, speed: float, *, compressed: bool) -> Measurement:
    return Measurement(compressed, 3, size * MB, 4 * size * MB, size / 10, size / speed, size * MB, 0, 1, 1, {})


def test_a_calibration_is_written_as_plots(tmp_path: Path) -> None:
    # Given measurements of both kinds, each of twice as much as the one before
    found = [
        measurement(size, speed, compressed=compressed)
        for compressed, speed in ((False, 150.0), (True, 20.0))
        for size in (16, 32, 64)
    ]
    # When
    written = write_figures(calibration_plots(found), tmp_path / "plots")
    # Then
    names = ("calibration_duration", "calibration_speed", "calibration_output_ratio")
    assert [path.name for path in written] == [f"{name}.{kind}" for name in names for kind in FORMATS]
    for path in written:
        if path.suffix == ".svg":
            assert "compressed files" in path.read_text(encoding="utf-8")
            ET.parse(path)
        else:
            assert path.read_bytes().startswith(b"\x89PNG")
