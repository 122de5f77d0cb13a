"""What a calibration advises: pure."""

import tomllib

from lake.settings import ConvertSettings, Settings, parse_settings
from sizing.advice import Advice, advise, report_lines, toml_lines
from sizing.measure import Measurement

MB = 1_000_000
SETTINGS = ConvertSettings()


def measurement(
    speed: float = 20.0, peak: int = 200 * MB, rejects: dict[str, int] | None = None, *, compressed: bool = False
) -> Measurement:
    """Of 1,000 MB as stored, 4,000 MB inflated."""
    return Measurement(
        compressed, 3, 1000 * MB, 4000 * MB, 30.0, 1000 / speed, 800 * MB, peak, 5_000_000, 16, rejects or {}
    )


def advice(*found: Measurement) -> dict[str, Advice]:
    return {f"{item.group}.{item.key}": item for item in advise(found, SETTINGS)}


def test_a_slow_processor_is_what_forecasts_assume() -> None:
    found = advice(measurement(speed=90.0), measurement(speed=17.3))
    assert found["price.mb_per_second_per_core"].value == 17.3


def test_a_fast_processor_waits_for_the_network() -> None:
    assert advice(measurement(speed=180.0))["price.mb_per_second_per_core"].value == 40.0


def test_plain_and_compressed_files_have_a_setting_each() -> None:
    found = advice(measurement(speed=39.0), measurement(speed=13.0, compressed=True))
    assert found["price.mb_per_second_per_core"].value == 39.0
    assert found["price.compressed_mb_per_second_per_core"].value == 13.0


def test_a_task_that_takes_too_much_memory_gets_smaller_row_groups() -> None:
    assert "convert.row_group_bytes" not in advice(measurement())
    found = advice(measurement(peak=400 * MB), measurement())["convert.row_group_bytes"]
    assert found.value == SETTINGS.row_group_bytes // 2
    assert "400 MB" in found.reason


def test_the_settings_file_is_valid_and_gives_each_reason() -> None:
    lines = list(toml_lines(list(advise([measurement(peak=400 * MB)], SETTINGS)), "dev"))
    settings = parse_settings(tomllib.loads("\n".join(lines)))
    assert isinstance(settings, Settings)
    assert (settings.price.mb_per_second_per_core, settings.convert.row_group_bytes) == (20.0, 64 << 20)
    assert sum(line.startswith("# ") for line in lines) == 2


def test_the_report_has_speed_ratios_memory_columns_and_rejects() -> None:
    text = "\n".join(report_lines([measurement(rejects={"not JSON": 7})]))
    for part in ("20 MB/s per core", "0.200 of the NDJSON", "200 MB", "4.00 bytes", "16 columns", "7 lines, not JSON"):
        assert part in text
