"""The alarms on the stream lane: thresholds from the settings, and no message for what passes by itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from infra.schedules import SWEEP_RATE

if TYPE_CHECKING:
    from tests.unit.infra.conftest import Assembly

ALARM = "AWS::CloudWatch::Alarm"


def alarms(item: Assembly, name: str) -> list[dict[str, Any]]:
    """Those of all shards, the first one's first."""
    return [body for key, body in item.resources(ALARM).items() if key.startswith(f"Alarms{name}")]


def sweep_seconds() -> int:
    (minutes,) = re.findall(r"rate\((\d+) minutes\)", SWEEP_RATE)
    return 60 * int(minutes)


def test_the_age_that_raises_the_alarm_is_a_setting(assembly: Assembly, other_assembly: Assembly) -> None:
    for item, minutes in ((assembly, 30), (other_assembly, 12.5)):
        for alarm in alarms(item, "StreamOldest"):
            assert (alarm["MetricName"], alarm["Statistic"]) == ("StreamOldestMinutes", "Maximum")
            assert alarm["Threshold"] == minutes == item.settings.alarms.stream_oldest_minutes


def test_the_time_of_a_micro_batch_that_raises_the_alarm_is_a_setting(
    assembly: Assembly, other_assembly: Assembly
) -> None:
    for item, minutes in ((assembly, 5), (other_assembly, 2)):
        for alarm in alarms(item, "SlowMicroBatch"):
            assert (alarm["MetricName"], alarm["Statistic"]) == ("MicroBatchMinutes", "Maximum")
            assert alarm["Threshold"] == minutes


def test_each_shard_has_alarms_of_its_own(assembly: Assembly, other_assembly: Assembly) -> None:
    # Given a stage with one streaming job, and one with two and a dataset's own
    for item, shards in ((assembly, [None]), (other_assembly, [None, "2", "orders"])):
        for name in ("StreamOldest", "SlowMicroBatch", "StreamSilent", "StreamSpilling"):
            # Then each alarm reads the metric of its shard, and says which one it is
            found = alarms(item, name)
            dimensions = [{entry["Name"]: entry["Value"] for entry in alarm["Dimensions"]} for alarm in found]
            assert [dimension.get("shard") for dimension in dimensions] == shards
            for alarm, shard in zip(found, shards, strict=True):
                assert alarm["AlarmDescription"].startswith(f"Shard {shard}: ") == (shard is not None)


def test_a_backlog_that_stays_old_is_one_alarm_and_not_one_for_each_sweep(assembly: Assembly) -> None:
    assert assembly.one(ALARM, "StreamOldest")["Period"] >= 2 * sweep_seconds()


def test_a_run_that_starts_while_the_sweep_looks_raises_no_alarm(assembly: Assembly) -> None:
    # Given one value in each period
    alarm = assembly.one(ALARM, "StreamSilent")
    assert alarm["Period"] == sweep_seconds()
    # Then two of them in three periods raise the alarm, also where one came early and the next one late
    assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == (2, 3)


def test_spilling_raises_an_alarm_while_the_window_is_watched(assembly: Assembly) -> None:
    alarm = assembly.one(ALARM, "StreamSpilling")
    assert (alarm["MetricName"], alarm["Statistic"], alarm["Threshold"]) == ("StreamSpilling", "Maximum", 1)
    assert alarm["Dimensions"] == [{"Name": "service", "Value": "stream_control"}]
    # One message for a spill, however seldom the window is watched
    assert alarm["Period"] >= 3600
