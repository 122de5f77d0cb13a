"""``settings check`` and ``settings explain``: all errors at once, the effect of a file, the meaning of a key."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.errors import ExitCode
from cli.main import app
from cli.offline.settings import settings_explain_command, summary, warnings
from lake.errors import InvalidInputError, InvalidSettingsError
from lake.settings import (
    DatasetRule,
    DatasetUrgentSettings,
    EmrSettings,
    InputSettings,
    LedgerSettings,
    PeakSettings,
    ScheduleSettings,
    Settings,
    StreamSettings,
    load_settings,
)
from lake.settings.declaration import declared_keys
from tests.unit.cli.conftest import Answered, Printed

DEV = Path(__file__).parents[3] / "settings" / "dev.toml"
WRONG = 'stage = "x"\n[stream]\ntrigger_seconds = 0\n[schedule]\novernight = "cron(0 25 * * ? *)"\n'
WEEKDAYS = Settings(stage="prod")


def test_every_error_of_a_file_is_a_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(WRONG)
    # When
    answer = CliRunner().invoke(app, ["settings", "check", str(file)])
    # Then
    assert isinstance(answer.exception, InvalidSettingsError)
    assert answer.stdout == ""
    first, second = str(answer.exception).splitlines()
    assert first.startswith("settings: stream.trigger_seconds = 0 is wrong")
    assert "its field hours is '25'" in second


def test_a_valid_file_is_described_in_words() -> None:
    answer = CliRunner().invoke(app, ["settings", "check", str(DEV)])
    assert answer.exit_code == ExitCode.OK
    lines = answer.stdout.splitlines()
    assert lines[0] == f"ok: {DEV} is valid"
    assert "stage        dev: the stack hybrid-router-dev; times are in Europe/Berlin" in lines
    assert "batch lane   everything else, every day at 22:00, to be complete by 06:00" in lines
    assert not any(line.startswith("warning") for line in lines)


def test_json_is_a_file_with_the_same_settings(tmp_path: Path) -> None:
    answer = CliRunner().invoke(app, ["settings", "check", str(DEV), "--json"])
    file = tmp_path / "all.json"
    file.write_text(answer.stdout)
    assert load_settings(file) == load_settings(DEV)


def test_a_stage_without_peak_hours_has_no_window() -> None:
    quiet = replace(WEEKDAYS, peak=PeakSettings(hours=()))
    rows = dict(summary(quiet))
    assert "" not in rows
    assert rows["stream lane"].startswith("keys that match */urgent/* at any hour; every 5 s")
    assert list(warnings(quiet)) == []
    # And on EMR Serverless workers end during idle times
    stream = StreamSettings(engine="emr-serverless", max_workers=5)
    rows = dict(summary(replace(WEEKDAYS, stream=stream, emr=EmrSettings(architecture="arm64"))))
    assert "unless more wait than 16 cores convert in 300 s" in rows["stream lane"]
    words = "on emr-serverless a driver and 0 to 4 executors G.1X, $0.1212 an hour while one is quiet"
    assert rows["stream lane"].endswith(words)


def test_rows_that_expire_need_a_bucket_that_only_aws_can_answer_about() -> None:
    forgetful = replace(WEEKDAYS, ledger=LedgerSettings(keep_days=60))
    assert list(warnings(forgetful)) == list(warnings(WEEKDAYS))
    (doubt,) = set(warnings(replace(forgetful, input=InputSettings(bucket="landing")))) - set(warnings(WEEKDAYS))
    assert "your bucket landing has to keep versions" in doubt


@pytest.mark.parametrize(
    ("urgent", "words"),
    [
        ({}, "keys that begin with o/: orders"),
        ({"max_bytes": 2_000}, "; urgent at any hour: files by their size"),
        ({"tags": ("p=high",), "metadata": ("p=high",)}, "; urgent at any hour: files by their tags, metadata"),
    ],
)
def test_what_makes_files_of_a_dataset_urgent_is_described(urgent: dict[str, Any], words: str) -> None:
    rule = DatasetRule("orders", "o/", urgent=DatasetUrgentSettings(**urgent))
    assert dict(summary(replace(WEEKDAYS, datasets=(rule,))))["dataset"].endswith(words)


DAYTIME = PeakSettings(hours=("08:00-20:00",))
EVENING = {"stream_start": "cron(0 17 * * ? *)", "stream_end": "02:00"}
ALL_DAY = {"stream_start": "cron(0 0 * * ? *)", "stream_end": "24:00", "overnight": "rate(1 day)"}


@pytest.mark.parametrize(
    ("schedule", "peak", "doubt"),
    [
        ({}, DAYTIME, None),
        (
            {},
            PeakSettings(hours=("08:00-20:00",), days=("fri", "sat")),
            "peak.hours = '08:00-20:00' on fri, sat: a part of it is outside of the stream window",
        ),
        ({"stream_start": "cron(45 7 1 * ? *)"}, DAYTIME, None),
        ({"overnight": "cron(0 19 * * ? *)"}, DAYTIME, "begins inside the stream window"),
        ({"stream_end": "18:00"}, DAYTIME, "outside of the stream window"),
        ({"stream_end": "07:00"}, DAYTIME, "passes midnight and lasts 23 h 15 min"),
        (EVENING, PeakSettings(hours=("18:00-02:00",)), "inside the stream window"),
        (ALL_DAY, PeakSettings(hours=("20:00-04:00",)), None),
    ],
)
def test_times_that_may_not_be_meant_are_named(schedule: dict[str, Any], peak: PeakSettings, doubt: str | None) -> None:
    settings = replace(WEEKDAYS, time_zone="Europe/Berlin", schedule=ScheduleSettings(**schedule), peak=peak)
    found = list(warnings(settings))
    assert bool(found) == (doubt is not None)
    assert doubt is None or any(doubt in text for text in found)


def test_every_key_is_explained() -> None:
    assert all(field.meaning and field.allowed for _, field in declared_keys(Settings))


def test_a_key_is_printed_with_unit_default_and_allowed_values(answered: Answered, printed: Printed) -> None:
    assert printed(settings_explain_command, "stream.trigger_seconds", code=ExitCode.OK).splitlines() == [
        "stream.trigger_seconds",
        "  Interval between micro-batches; urgent files do not wait for it.",
        "  unit     seconds",
        "  default  5",
        "  allowed  a number from 1 to 3600",
    ]
    key = answered(settings_explain_command, "encryption")["keys"][0]
    assert (key["key"], key["default"], key["required"]) == ("encryption.kms_key", "", False)


@pytest.mark.parametrize(("key", "advice"), [("stream.triger_seconds", "stream.trigger_seconds"), ("zz", "or a table")])
def test_an_unknown_key_names_close_ones(key: str, advice: str) -> None:
    with pytest.raises(InvalidInputError, match=advice):
        settings_explain_command(key)
