"""A whole day by every routing and engine: the parts add up, and the options differ as expected."""

import json
import re
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from lake.engines.description import max_workers
from lake.engines.glue import FLEX_WAIT_MINUTES, START_SECONDS
from lake.errors import InvalidInputError
from lake.ledger import DatasetSpeed
from lake.settings import Settings
from sizing.assumptions import Measured
from sizing.day import simulate, simulate_profile
from sizing.options import night_start, routing_options, stream_window
from sizing.result import OptionResult, Simulation
from tests.unit.docs.pages import CHECKOUT
from tests.unit.sizing.world import MB, NIGHT, arrivals, profile, settings

DEV = CHECKOUT / "settings" / "dev.toml"
DAY: dict[str, Any] = {"files": 2000, "sizes": [{"bytes": 1250 * MB}], "urgent_share": 0.1, "datasets": 2}


def simulated(of: Settings | None = None, **fields: Any) -> Simulation:
    of = of or settings()
    return simulate(arrivals(profile(**{**DAY, **fields}), of), of, lambda _: None)


def option(found: Simulation, routing: str) -> OptionResult:
    return next(item for item in found.options if item.routing == routing)


@pytest.fixture(scope="module")
def usual() -> Simulation:
    return simulated()


def test_every_option_converts_every_file(usual: Simulation) -> None:
    found = usual
    assert found.files == 2000
    for item in found.options:
        assert item.stream.files + item.batch.files == found.files
        assert item.stream.bytes + item.batch.bytes == found.bytes == 2000 * 1250 * MB
        parts = item.dollars.stream + item.dollars.night + item.dollars.other
        assert item.dollars.total == pytest.approx(parts, abs=0.016)
        assert item.dollars.low <= item.dollars.total <= item.dollars.high


def test_each_streaming_job_is_billed_for_its_workers_while_hardly_any_file_arrives() -> None:
    found, alone = (simulated(settings(stream={"jobs": jobs, "max_workers": 4}), files=10) for jobs in (3, 1))
    values = {item.name: item.value for item in found.assumptions}
    assert values["workers of a quiet stream"] == 3 * 2
    dollars = option(alone, "hybrid").dollars.stream
    assert option(found, "hybrid").dollars.stream == pytest.approx(3 * dollars, rel=0.01)


@pytest.mark.parametrize(
    "stream", [{}, {"jobs": 3}, {"worker_type": "G.2X"}, {"worker_type": "G.8X", "jobs": 2}], ids=str
)
@pytest.mark.parametrize("files", [1, 2_000_000])
def test_the_settings_of_all_stream_can_be_deployed(stream: dict[str, Any], files: int) -> None:
    # Given a day for which the workers are enough, and a day for which the largest jobs are not
    of = settings(stream={"max_workers": 4, **stream})
    busiest = files * 1250 / (24 * 40)
    # When the person writes the values of the option into the file
    (option, *_) = routing_options(of, busiest)
    named = dict(change.split(" = ") for change in option.changes if " = " in change)
    changed = {"max_workers": int(named["stream.max_workers"]), **stream}
    dpus = {"dpus": int(named["quota.dpus"])} if "quota.dpus" in named else {}
    deployed = settings(stream=changed, quota=dpus)
    # Then it is valid, and has the cores of the simulated one
    assert deployed.stream.cores == option.settings.stream.cores
    assert deployed.stream.max_workers == (4 if files == 1 else max_workers(deployed.stream.worker_type))


def test_urgent_files_have_a_latency_of_their_own(usual: Simulation) -> None:
    found = option(usual, "hybrid")
    assert found.urgent_p95
    assert found.stream.p95
    assert found.urgent_p95 < found.stream.p95
    assert option(usual, "all-batch").urgent_p95 is None
    # And so have files that the settings do not recognize by their keys, whatever the files' common prefix
    of = settings(urgent={"keys": []}, datasets=[{"name": "orders", "prefix": "non-urgent/"}])
    by_tags = simulate_profile(profile(urgent_share=0.1), of, lambda _: None)
    assert option(by_tags, "hybrid").urgent_p95


def test_every_option_has_a_low_and_a_high_until_the_ledger_has_measured_its_datasets() -> None:
    of = settings()
    few = arrivals(profile(**{**DAY, "files": 500, "sizes": [{"bytes": 12_500 * MB}]}), of)
    speeds = {"dataset": DatasetSpeed(40e6, 10e6)}
    assumed, measured = (simulate(few, of, lambda _: None, Measured(speed, {})) for speed in ({}, speeds))
    assert all(item.dollars.low < item.dollars.total < item.dollars.high for item in assumed.options)
    assert all(item.dollars.low == item.dollars.total == item.dollars.high for item in measured.options)


def test_the_same_rows_as_compressed_files_have_a_night_of_their_own() -> None:
    # Given plain files, which would be a tenth as large
    day = {**DAY, "files": 100, "gzip": {"ratio": 10}}
    found = simulate_profile(profile(**day), settings(), lambda _: None)
    # When, Then
    plain, gzip = option(found, "all-batch"), found.as_gzip
    assert gzip is not None
    assert (gzip.batch.files, 10 * gzip.batch.bytes) == (100, plain.batch.bytes)
    assert gzip.dollars.storage_month == plain.dollars.storage_month
    assert known_speed(found) == ("12.6", "assumed", "gzip.ratio of the profile")
    # And files that are already compressed are not compressed again
    compressed = {**day, "gzip": {"share": 0.5}}
    assert simulate_profile(profile(**compressed), settings(), lambda _: None).as_gzip is None


def known_speed(found: Simulation) -> tuple[str, str, str]:
    """The speed of compressed input: the value, how it is known, and its source."""
    name = "compressed input that a core converts, as stored"
    return next((f"{item.value:g}", item.basis.value, item.source) for item in found.assumptions if item.name == name)


@pytest.mark.parametrize(
    ("price", "ratio", "known"), [({}, 8, "assumed"), ({"compressed_mb_per_second_per_core": 9}, 10, "setting")]
)
def test_the_speed_of_compressed_files_is_a_setting_only_where_the_settings_give_one(
    price: dict[str, Any], ratio: int, known: str
) -> None:
    found = simulate_profile(profile(files=10, gzip={"ratio": ratio}), settings(price=price), lambda _: None)
    assert known_speed(found)[1:] == (known, "price.compressed_mb_per_second_per_core")


def test_the_wait_for_capacity_is_what_the_ledger_has_measured() -> None:
    # Given a night on Flex, whose runs wait half an hour longer than assumed
    of = settings(batch={"engines": ["glue-flex"]})
    few, wait = arrivals(profile(**{**DAY, "files": 100}), of), START_SECONDS + 60 * FLEX_WAIT_MINUTES + 1800
    # When
    assumed, measured = (simulate(few, of, lambda _: None, Measured({}, waits)) for waits in ({}, {"glue-flex": wait}))
    # Then
    first, second = (option(found, "all-batch").night for found in (assumed, measured))
    assert first
    assert second
    later = datetime.fromisoformat(second.forecast.end) - datetime.fromisoformat(first.forecast.end)
    assert 1500 < later.total_seconds() < 2400
    rests_on = {item.name: (item.value, item.source) for item in measured.assumptions}
    assert rests_on["start of a run of glue-flex, and its wait"] == (wait, "the ledger")


def test_a_stream_that_misses_its_latency_goal_spills() -> None:
    # Given 4 cores, which convert 40 MB a second each, in one streaming job or in each of three
    day = {"files": 3_000, "curve": [0] * 9 + [1] * 3 + [0] * 12}
    one, three = (
        option(
            simulated(settings(stream={"latency_goal_seconds": 32, "max_workers": 2, "jobs": jobs}), **day), "hybrid"
        )
        for jobs in (1, 3)
    )
    assert one.spilled_files > 2 * three.spilled_files > 0
    assert one.peak_backlog_bytes > 5_000 * MB
    assert one.stream.files + one.batch.files == 3_000


@pytest.mark.parametrize(
    ("schedule", "day", "message"),
    [
        ({"overnight": "rate(1 day)"}, "2026-11-18", "cannot be simulated"),
        ({"overnight": "cron(0 22 1 * ? *)"}, "2026-11-18", "cannot be simulated"),
        ({"overnight": "cron(0 22 ? * MON-FRI *)"}, "2026-11-22", "a Sunday"),
    ],
)
def test_a_schedule_that_cannot_be_simulated_is_refused(schedule: dict, day: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        arrivals(profile(date=day), settings(schedule=schedule))


def test_the_night_and_the_window_follow_the_local_clock() -> None:
    berlin = settings(time_zone="Europe/Berlin")
    night = night_start(berlin, NIGHT.date())
    assert night.isoformat() == "2026-11-18T21:00:00+00:00"
    window = stream_window(berlin, night)
    assert window
    assert [instant.isoformat() for instant in window] == ["2026-11-18T06:45:00+00:00", "2026-11-18T19:15:00+00:00"]
    assert stream_window(settings(peak={"hours": []}), night) is None
    # And a night after midnight, of a Saturday, has the window of Friday; a Sunday's night has none
    late = settings(time_zone="Europe/Berlin", schedule={"overnight": "cron(0 2 * * ? *)"})
    window = stream_window(late, night_start(late, date(2026, 11, 21)))
    assert window
    assert [instant.isoformat() for instant in window] == ["2026-11-20T06:45:00+00:00", "2026-11-20T19:15:00+00:00"]
    assert stream_window(late, night_start(late, date(2026, 11, 22))) is None


def test_two_sizes_are_enough() -> None:
    found = simulated_command("--a-day", "1TB", "--files-of", "2.5GB")
    assert "400 files, 1 TB a day; times in Europe/Berlin" in found
    for word in ("all-stream", "all-batch", "hybrid", "glue-flex", "at a time", "price.dpu_hour_flex"):
        assert word in found
    assert "as gzip files from their writers, all-batch on" in found
    assert "low to high: S3 read 2 to 0.75 times as fast as assumed" in found


def test_two_sizes_are_enough_for_a_stage_without_urgent_files(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('stage = "dev"\nurgent.keys = []\npeak.hours = []\n')
    found = CliRunner().invoke(app, ["simulate", "--a-day", "1TB", "--files-of", "2.5GB", "--settings", str(path)])
    assert found.exit_code == 0, found.output
    assert re.search(r"^hybrid\b.*\b1 TB\b", found.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--a-day", "1GB", "--files-of", "big"], "big is not a size"),
        (["--a-day", f"{'9' * 400}B", "--files-of", "1MB"], "9B is not a size"),
        (["--a-day", "1MB", "--files-of", "1TB"], "files = 0 is wrong"),
    ],
)
def test_sizes_that_are_not_valid(options: list[str], message: str) -> None:
    found = CliRunner().invoke(app, ["simulate", *options, "--settings", str(DEV)])
    assert found.exit_code
    assert message in found.output + str(found.exception)


def simulated_command(*arguments: str) -> str:
    found = CliRunner().invoke(app, ["simulate", *arguments, "--settings", str(DEV)])
    assert found.exit_code == 0, found.output
    return found.stdout


def test_the_command_prints_json(tmp_path: Path) -> None:
    path = tmp_path / "profile.toml"
    path.write_text("files = 100\nsizes = [{ bytes = 1_000_000 }]\n", encoding="utf-8")
    body = json.loads(simulated_command(str(path), "--json"))
    assert body["files"] == 100
    assert {item["basis"] for item in body["assumptions"]} >= {"measured", "listed", "assumed"}
    assert all(item["source"] for item in body["assumptions"])


def test_one_dataset_stands_for_all() -> None:
    # Given 100 datasets with 2 files each, far apart
    found = simulated(files=200, datasets=100, urgent_share=0)
    # Then each dataset has manifests of its own in the stream lane
    assert option(found, "all-stream").stream.manifests == pytest.approx(200, rel=0.05)
