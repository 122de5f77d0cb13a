"""Settings of the streaming jobs on EMR Serverless: sizes of workers, what they reserve, and how a run is started."""

from __future__ import annotations

from typing import Any

import pytest

from lake.errors import InvalidInputError, InvalidSettingsError
from lake.settings import parse_settings
from lake.stream_launch import StreamLaunch

ON_EMR = {"engine": "emr-serverless"}
LAUNCH = StreamLaunch("00app", "arn", "s3://code/main.py", "--a 1 --b 2", "--conf x=y", 1440, "/logs")


@pytest.mark.parametrize(
    ("stream", "key", "message"),
    [
        ({"engine": "glue-flex"}, "engine", "expected one of glue, emr-serverless"),
        ({"emr_driver_vcpus": 3}, "emr_driver_vcpus", "expected one of 1, 2, 4, 8, 16"),
        ({"emr_driver_vcpus": 1, "emr_driver_gb": 3}, "emr_driver_gb", "from 4 to 8, for a worker of 1 vCPU"),
        ({"emr_driver_gb": 17}, "emr_driver_gb", "from 4 to 16, for a worker of 2 vCPU"),
        ({"emr_executor_gb": 31}, "emr_executor_gb", "from 8 to 30, for a worker of 4 vCPU"),
        ({"emr_executor_vcpus": 8, "emr_executor_gb": 18}, "emr_executor_gb", "from 16 to 60 in steps of 4"),
        ({"emr_executor_vcpus": 16, "emr_executor_gb": 44}, "emr_executor_gb", "from 32 to 120 in steps of 8"),
        ({"emr_executor_vcpus": 1, "emr_executor_gb": 2}, "emr_executor_gb", r"its 1 task needs 1\.3 GB.* more memory"),
        ({"emr_min_executors": 10}, "emr_min_executors", "from 0 to 9"),
    ],
)
def test_workers_that_do_not_exist_or_are_too_small_are_refused(stream: dict[str, Any], key: str, message: str) -> None:
    with pytest.raises(InvalidSettingsError, match=message) as refused:
        parse_settings({"stage": "dev", "stream": {**ON_EMR, **stream}})
    assert refused.value.key == f"stream.{key}"


def test_a_row_group_needs_memory_of_the_executors_of_the_engine() -> None:
    # Given row groups of 512 MiB, for which four tasks need 6 GB beside the heap
    batch = {"worker_type": "G.8X", "engines": ["glue"], "workers": 2}
    others = {"stage": "dev", "convert": {"row_group_bytes": 512 << 20}, "batch": batch}
    # Then a smaller executor is refused, and what the streaming job had on Glue does not matter
    with pytest.raises(InvalidSettingsError, match=r"stream\.emr_executor_gb = 12 is wrong: its 4 tasks need 6\.0 GB"):
        parse_settings({**others, "stream": {**ON_EMR, "emr_executor_gb": 12}})
    assert parse_settings({**others, "stream": {**ON_EMR, "worker_type": "G.1X"}}).stream.on_emr
    with pytest.raises(InvalidSettingsError, match=r"stream\.worker_type"):
        parse_settings(others)


def test_the_stream_takes_vcpus_and_no_dpus() -> None:
    # Given two streaming jobs, each with a driver of 2 vCPU and 8 GB and up to 9 executors of 2 vCPU and 6 GB
    sizes = {"emr_executor_vcpus": 2, "emr_executor_gb": 6}
    settings = parse_settings({"stage": "dev", "stream": {**ON_EMR, **sizes, "jobs": 2}})
    # Then the night has all of Glue's quota
    assert (settings.stream_dpus, settings.stream_glue_runs, settings.max_overnight_runs) == (0, 0, 50)
    assert (settings.stream_runs, settings.stream_vcpus, settings.uses_emr) == (2, 2 * 20, True)
    assert settings.stream.emr_gb == 8 + 9 * 6
    # And the cores that convert are those of the executors
    assert settings.stream.cores == 18
    assert settings.stream.side_by_side_bytes == 18 << 30
    # And on Glue it is as it was
    glue = parse_settings({"stage": "dev", "stream": {"jobs": 2}})
    assert (glue.stream_dpus, glue.stream_glue_runs, glue.stream_vcpus, glue.uses_emr) == (20, 2, 0, False)


def test_a_quota_that_is_too_small_for_a_run_of_the_night_is_refused_without_a_word_about_the_stream() -> None:
    with pytest.raises(InvalidSettingsError, match="each run of the batch lane needs 10: take fewer") as refused:
        parse_settings({"stage": "dev", "stream": ON_EMR, "quota": {"dpus": 9}})
    assert "streaming" not in str(refused.value)


def test_how_a_run_is_started_is_read_back() -> None:
    assert StreamLaunch.from_text(LAUNCH.to_text()) == LAUNCH
    for text in ("", "{}", "[]", '{"application": "a", "more": 1}'):
        with pytest.raises(InvalidInputError, match=r"STREAM_LAUNCH cannot be read .* deploy the stack again"):
            StreamLaunch.from_text(text)


@pytest.mark.parametrize(("shard", "more"), [("1", []), ("clicks", ["--stream_shard", "clicks"])])
def test_the_request_for_a_run(shard: str, more: list[str]) -> None:
    request = LAUNCH.request(shard, "job", "token")
    assert request["jobDriver"]["sparkSubmit"]["entryPointArguments"] == ["--a", "1", "--b", "2", *more]
    monitoring = request["configurationOverrides"]["monitoringConfiguration"]
    assert monitoring["managedPersistenceMonitoringConfiguration"] == {"enabled": True}
    assert "s3MonitoringConfiguration" not in monitoring
