"""Settings of the streaming jobs on EMR Serverless: sizes of workers, what they reserve, and how a run is started."""

from __future__ import annotations

import pytest

from lake.engines.emr_serverless import StreamLaunch
from lake.errors import InvalidInputError
from lake.settings import parse_settings

ON_EMR = {"engine": "emr-serverless"}
LAUNCH = StreamLaunch("00app", "arn", "s3://code/main.py", "--a 1 --b 2", "--conf x=y", 1440, "/logs")


def test_the_stream_takes_vcpus_and_no_dpus() -> None:
    # Given two streaming jobs, each with a driver of 2 vCPU and 8 GB and up to 9 executors of 8 vCPU and 32 GB
    settings = parse_settings({"stage": "dev", "stream": {**ON_EMR, "worker_type": "G.2X", "jobs": 2}})
    # Then the night has all of Glue's quota
    assert (settings.stream_dpus, settings.stream_glue_runs, settings.max_overnight_runs) == (0, 0, 50)
    assert (settings.stream_runs, settings.stream_vcpus, settings.uses_emr) == (2, 2 * 74, True)
    assert settings.stream.units.gb == 8 + 9 * 32
    # And the cores that convert are those of the executors
    assert settings.stream.cores == 72
    assert settings.stream.side_by_side_seconds == 72 * 27
    # And on Glue it is as it was
    glue = parse_settings({"stage": "dev", "stream": {"jobs": 2}})
    assert (glue.stream_dpus, glue.stream_glue_runs, glue.stream_vcpus, glue.uses_emr) == (20, 2, 0, False)


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
