"""stream_control: the streaming run inside its window, at its end and after it, and a job that dies at its start."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from lake.engines.glue import GlueStreamRuns
from lake.errors import InvalidInputError, TransientError
from lake.faults import NO_ANSWER
from lake.manifest import Lane, ObjectVersion
from lake.settings import parse_settings
from lake.shards import FIRST_SHARD
from router.route.decide_lane import WAITS, decide_lanes
from router.route.handler import route
from router.stream.handler import stream_control
from router.stream.runs import MAX_STARTS, FailedStartsError, ensure_running
from router.stream.spill import MEASURED_FOR, is_spilling
from router.sweep.handler import _measure_stream, sweep
from router.sweep.manifests import renew_pointers
from router.sweep.repair import Repair
from router.telemetry import Metric
from tests.load.request_counts import counted_requests
from tests.unit.lake.world import PARTITION, file_of
from tests.unit.router.conftest import Deployment, act, measure_speed, recorded
from tests.unit.router.events import batch, failures, message, s3_record


def runs(deployment: Deployment) -> list[str]:
    return list(deployment.glue.runs.get("stream-job", {}).values())


def fail_runs(deployment: Deployment, **bill: str) -> None:
    runs = deployment.glue.runs["stream-job"]
    runs.update(dict.fromkeys(runs, "FAILED"))
    deployment.glue.bills = dict.fromkeys(runs, bill)


def test_a_window_without_room_for_a_run_is_open_and_watched(deployment: Deployment) -> None:
    # Given: runs of the night that still use up the account's quota
    deployment.glue.quota_is_full = True
    # When the window begins, then it is open
    assert act(deployment, "start") == {"running": False, "windowOver": False}
    assert deployment.ledger.stream.get().window_until == "2026-11-20T19:15:00.000+00:00"
    # When it is watched, then people are notified
    with pytest.raises(TransientError, match="Glue has no room to start the streaming job"):
        act(deployment, "watch")
    # When there is room again, then the run starts
    deployment.glue.quota_is_full = False
    assert act(deployment, "watch")["running"]
    assert runs(deployment) == ["RUNNING"]


def test_a_window_that_begins_while_the_engine_is_down_is_watched(deployment: Deployment) -> None:
    # Given a Glue that refuses the start for longer than the execution retries it
    down = Mock(side_effect=ClientError({"Error": {"Code": "InternalServiceException"}}, "StartJobRun"))
    with deployment.patch.context() as patched:
        patched.setattr(deployment.glue, "start_job_run", down)
        # When, Then the window is open and watched, and the alarm and the caller report it
        assert act(deployment, "start") == {"running": False, "windowOver": False}
        for event in ({"action": "watch"}, {"action": "start", "manual": True}):
            with pytest.raises(ClientError, match="InternalServiceException"):
                stream_control(event, deployment.services)
    assert act(deployment, "watch")["running"]


def test_a_window_that_was_opened_meanwhile_is_left_open_by_the_execution_of_the_last_one(
    deployment: Deployment,
) -> None:
    # Given a window that is over, and its execution, which waits until the run has ended
    act(deployment, "start")
    deployment.ledger.stream.begin_run("jr_1", deployment.now)
    deployment.wait(timedelta(hours=12))
    last: dict[str, Any] = {"shards": {"1": []}}
    assert stream_control({"action": "stop", **last}, deployment.services)["stopping"] == {"1": ["jr_1"]}
    # When a person or the next execution opens another one
    act(deployment, "start")
    # Then the run is neither asked to end nor killed
    assert stream_control({"action": "stop", **last}, deployment.services)["stopped"]
    assert not deployment.ledger.stream.get().stop_requested
    assert stream_control({"action": "kill", **last}, deployment.services)["killed"] == 0
    assert runs(deployment) == ["RUNNING"]


def test_a_person_ends_the_window_by_a_stop_and_another_one_opens_it_again(deployment: Deployment) -> None:
    # Given an open window that an execution watches
    act(deployment, "start")
    deployment.ledger.stream.begin_run("jr_1", deployment.now)
    # When a person stops the stream, Then the execution starts no run and ends, and no run that a file starts stays
    stopping = act(deployment, "stop")["stopping"]
    fail_runs(deployment)
    assert act(deployment, "watch") == {**WATCHED, "running": False, "windowOver": True}
    assert runs(deployment) == ["FAILED"]
    assert recorded(lambda: _measure_stream(Repair(deployment.services, deployment.now)), Metric.STREAM_SILENT) == [0]
    # When another person starts it while the first one waits, Then the window stays open
    act(deployment, "start")
    assert not act(deployment, "stop", stopping)["windowOver"]
    assert runs(deployment) == ["FAILED", "RUNNING"]


WATCHED = {"backlogBytes": 0, "spilling": False, "microBatchMinutes": 0.0}


def test_a_run_that_glue_does_not_stop_does_not_count_as_killed(deployment: Deployment) -> None:
    act(deployment, "start")
    # Given an answer with an error of the run, which is not an error of the request
    error = {"ErrorDetail": {"ErrorCode": "OperationTimeoutException", "ErrorMessage": "timed out"}}
    deployment.patch.setattr(deployment.glue, "batch_stop_job_run", lambda **_: {"Errors": [error]})
    with pytest.raises(TransientError, match="OperationTimeoutException"):
        act(deployment, "kill")
    # When the run ended by itself, nothing is left to stop
    fail_runs(deployment)
    assert act(deployment, "kill")["killed"] == 0


def test_a_file_that_arrives_after_a_kill_does_not_wait_for_a_sweep(deployment: Deployment) -> None:
    act(deployment, "start")
    deployment.ledger.stream.begin_run("jr_1", deployment.now)
    act(deployment, "stop")
    assert act(deployment, "kill")["killed"] == 1
    assert not deployment.ledger.stream.get().stop_requested
    # Given a driver that still reports that it is alive until Glue has ended it
    deployment.glue.runs["stream-job"]["jr_1"] = "STOPPING"
    deployment.ledger.stream.record_heartbeat("jr_1", deployment.now)
    # Then the event is redelivered until another run can be started
    assert redelivered(deployment)
    fail_runs(deployment)
    assert not redelivered(deployment)
    assert runs(deployment) == ["FAILED", "RUNNING"]
    # And the heartbeat of the new run is trusted
    deployment.ledger.stream.begin_run("jr_2", deployment.now)
    deployment.glue.start_job_run = Mock()  # type: ignore[method-assign]
    assert ensure_running(deployment.services, [FIRST_SHARD]) == {}
    deployment.glue.start_job_run.assert_not_called()


def redelivered(deployment: Deployment) -> bool:
    """Put an urgent file; return whether its event must be redelivered, because no run will see it."""
    event = batch(message("m1", s3_record("orders/urgent/a.ndjson")))
    return failures(route(event, deployment.services)) == ["m1"]


def peak_files(*names: str) -> list[ObjectVersion]:
    """Files that arrived in peak hours, in this order; each takes a core 2.5 seconds at 40 MB a second."""
    return [
        replace(file_of(f"orders/{name}.json", 100_000_000), arrived_at=f"2026-11-20T09:00:0{name}") for name in names
    ]


def admitted(deployment: Deployment, *names: str) -> list[str]:
    """Names of the files that one invocation of ``route`` admits to the stream lane, in their order."""
    files = peak_files(*names)
    decisions = decide_lanes(deployment.services, reversed(files), deployment.now)
    lanes = [decision.lane for decision in map(decisions.__getitem__, files) if decision is not NO_ANSWER]
    return [name for name, lane in zip(names, lanes, strict=True) if lane == Lane.STREAM]


def test_peak_files_are_admitted_as_long_as_the_lane_converts_them_in_time(deployment: Deployment) -> None:
    # Given 4 cores, and files that may wait for 4 of 8 seconds
    deployment.configure(stream={"latency_goal_seconds": 8, "max_workers": 2})
    # When, Then six files of 2.5 seconds fit, the oldest ones, and the rest spills
    assert admitted(deployment, *"01234567") == list("012345")
    assert deployment.ledger.stream.get().spilling
    assert admitted(deployment, "8") == []
    (spilled,) = decide_lanes(deployment.services, peak_files("8"), deployment.now).values()
    but = "but the stream's backlog takes longer than stream.latency_goal_seconds"
    assert getattr(spilled, "reason", None) == f"{WAITS}: peak hours 08:00-20:00 Europe/Berlin, {but}"
    # When all cores have converted for a second, then there is room again
    deployment.wait(timedelta(seconds=1))
    assert admitted(deployment, *"89") == ["8", "9"]
    # When a watch finds no backlog, then all of the room is free
    act(deployment, "watch")
    assert not deployment.ledger.stream.get().spilling
    assert admitted(deployment, *"01234567") == list("012345")


def test_above_the_goal_no_file_is_admitted_before_the_next_measurement(deployment: Deployment) -> None:
    deployment.configure(
        stream={"latency_goal_seconds": 4, "max_workers": 2}, peak={"hours": ["00:00-12:00", "12:00-00:00"]}
    )
    measure_speed(deployment, 10)
    act(deployment, "start")
    waiting = [deployment.queued(f"{name}.json", lane=Lane.STREAM) for name in "ab"]
    act(deployment, "watch")
    # The next watch comes an hour later at most (schedule.watch_seconds), and may be repeated
    deployment.wait(timedelta(hours=1) + MINUTE)
    assert admitted(deployment, "0") == []
    # When a person has stopped the watch, or the window is over, Then there is no next measurement
    deployment.wait(MEASURED_FOR - timedelta(hours=1))
    assert admitted(deployment, "0") == ["0"]
    act(deployment, "watch")
    assert admitted(deployment, "0") == []
    deployment.wait(timedelta(hours=11))
    assert admitted(deployment, "0") == ["0"]
    # When the next window begins, Then the watch measures again
    act(deployment, "start")
    act(deployment, "watch")
    assert admitted(deployment, "0") == []
    for row in waiting:
        deployment.ledger.manifests.fail(row, "because", deployment.now)
    act(deployment, "watch")
    assert admitted(deployment, "0") == ["0"]


def test_two_invocations_count_what_both_admit(deployment: Deployment) -> None:
    # Given a row that another invocation changed after the read, by a request that its client has repeated
    stream = deployment.ledger.stream
    before = stream.get()
    deployment.faults.repeat = len(deployment.faults.writes) + 1
    assert stream.admit(before, 1000, deployment.now, spilling=False)
    # When, Then
    assert not stream.admit(before, 2000, deployment.now + timedelta(seconds=1), spilling=False)
    assert stream.get().backlog_milliseconds == 1000


@pytest.mark.parametrize(
    ("backlog", "before", "after"), [(200, False, False), (201, False, True), (49, True, False), (50, True, True)]
)
def test_spilling_has_a_high_and_a_low_mark(backlog: int, before: bool, after: bool) -> None:
    # Given 10 seconds of 20 cores
    stream = parse_settings({"stage": "t", "stream": {"latency_goal_seconds": 10, "max_workers": 6}}).stream
    # When, Then
    assert is_spilling(stream, backlog, before) == after


def test_a_watch_measures_the_backlog_and_spills(deployment: Deployment) -> None:
    # Given: 100 bytes queued and 100 running, of a dataset with the assumed speed of the settings
    deployment.configure(stream={"latency_goal_seconds": 4, "max_workers": 2})
    waiting = deployment.queued("a.json", lane=Lane.STREAM)
    claim = deployment.claimed(deployment.queued("b.json", lane=Lane.STREAM))
    assert not act(deployment, "watch")["spilling"]
    # When the measured speed of 4 cores is 40 bytes a second together
    measure_speed(deployment, 10)
    names = (Metric.STREAM_RUNNING, Metric.STREAM_BACKLOG_BYTES, Metric.STREAM_SPILLING)
    assert recorded(lambda: act(deployment, "watch"), *names) == [1, 200, 1]
    assert deployment.ledger.stream.get().spilling
    for row in (waiting, claim):
        deployment.ledger.manifests.fail(row, "because", deployment.now)
    assert not act(deployment, "watch")["spilling"]
    assert not deployment.ledger.stream.get().spilling


@pytest.mark.parametrize(("manifests", "spilling"), [(12, False), (20, True)])
@pytest.mark.parametrize("measured", [None, 400])
def test_a_backlog_of_tiny_manifests_is_as_long_as_their_tasks(
    deployment: Deployment, measured: int | None, manifests: int, spilling: bool
) -> None:
    # Given 4 cores for a second, and manifests of 100 bytes that are assumed to take no time, or were measured
    deployment.configure(stream={"latency_goal_seconds": 1, "max_workers": 2})
    if measured is not None:
        measure_speed(deployment, measured)
    for number in range(manifests):
        deployment.queued(f"{number}.json", lane=Lane.STREAM)
    # When, Then
    assert act(deployment, "watch")["spilling"] == spilling


def test_a_watch_of_ten_times_the_datasets_costs_no_request_more(deployment: Deployment) -> None:
    # Given manifests of different datasets; the watch of the first one starts the run
    requests = []
    for number in range(11):
        partition = replace(PARTITION, dataset=f"dataset_{number}")
        deployment.queued(f"{number}.json", lane=Lane.STREAM, partition=partition)
        with counted_requests() as counts:
            act(deployment, "watch")
        requests.append(counts)
    # When, Then
    assert requests[1] == requests[10]


def test_an_unknown_action_is_refused(deployment: Deployment) -> None:
    with pytest.raises(InvalidInputError, match="expected one of start, watch, stop, kill"):
        act(deployment, "restart")


def test_a_watch_measures_the_micro_batch_of_a_live_run(deployment: Deployment) -> None:
    stream = deployment.ledger.stream
    assert act(deployment, "watch")["microBatchMinutes"] == 0
    # Given a run that has worked on a micro-batch for 7 minutes
    stream.begin_run("jr_1", deployment.now)
    assert act(deployment, "watch")["microBatchMinutes"] == 0
    begun = deployment.now
    deployment.wait(timedelta(minutes=7))
    stream.record_heartbeat("jr_1", deployment.now, begun)
    assert recorded(lambda: act(deployment, "watch"), Metric.MICRO_BATCH_MINUTES) == [7]
    # When it has died, Then its micro-batch no longer counts
    deployment.wait(timedelta(minutes=4))
    assert act(deployment, "watch")["microBatchMinutes"] == 0


REASON = "LAUNCH ERROR | the zip of wheels could not be installed"
MINUTE = timedelta(minutes=1)


def test_a_job_that_dies_at_its_start_is_started_less_and_less_often(deployment: Deployment) -> None:
    # Given a window of nine hours that is watched each minute, in which every run dies at once
    runs: dict[str, str] = deployment.glue.runs.setdefault("stream-job", {})
    errors, started = list[str](), list[datetime]()
    act(deployment, "start")
    for _ in range(9 * 60):
        if len(runs) > len(started):
            started.append(deployment.now)
        fail_runs(deployment, ErrorMessage=REASON)
        deployment.wait(MINUTE)
        try:
            act(deployment, "watch")
        except FailedStartsError as error:
            errors.append(str(error))
    assert [(after - before) / MINUTE for before, after in pairwise(started)] == [1, 2, 4, 8, 16, 30, 30]
    # Then the third failure has reported the reason
    assert errors[0].startswith("3 consecutive runs of the streaming job stream-job ended before they began")
    assert REASON in errors[0]
    assert "starts at 2026-11-20T09:37:00.000+00:00: remove the cause, then run 'hybrid-router" in errors[0]
    # And finally only a person's command starts it
    assert errors[-1].startswith(f"{MAX_STARTS} consecutive runs of")
    assert "no other run starts automatically" in errors[-1]
    row = deployment.ledger.stream.get()
    assert (row.starts, REASON in str(row.start_failure)) == (MAX_STARTS, True)
    assert not act(deployment, "start")["running"]
    assert len(runs) == MAX_STARTS
    assert stream_control({"action": "start", "manual": True}, deployment.services)["running"]
    assert len(runs) == MAX_STARTS + 1
    # When that run works, Then the failures are forgotten
    deployment.ledger.stream.begin_run("jr_9", deployment.now)
    row = deployment.ledger.stream.get()
    assert (row.starts, row.start_failure) == (0, None)


def test_files_that_arrive_start_it_no_more_often_and_a_sweep_reports_why(deployment: Deployment) -> None:
    # Given urgent files, and runs that each die in the first minutes
    runs: dict[str, str] = deployment.glue.runs.setdefault("stream-job", {})
    deployment.wait(timedelta(hours=12))
    for minutes in (0, 0, 0, 1, 0, 2, 0, 3):
        deployment.wait(minutes * MINUTE)
        event = batch(message("m", s3_record(f"clicks/urgent/{deployment.now:%M}.json")))
        assert failures(route(event, deployment.services)) == []
        fail_runs(deployment)
    assert len(runs) == 3
    # When a sweep finds a waiting file, Then it starts no run either, and its error has the reason
    stream = deployment.ledger.stream
    stream.count_start(stream.get(), "jr_4", deployment.now + timedelta(hours=1))
    runs["jr_4"] = "FAILED"
    deployment.queued("late.json", lane=Lane.STREAM)
    deployment.wait(timedelta(hours=1))
    repair = Repair(deployment.services, deployment.now + timedelta(hours=1))
    renew_pointers(repair)
    assert ([type(error) for error in repair.errors], len(runs)) == ([FailedStartsError], 4)
    assert deployment.ledger.stream.get().start_failure == "FAILED, without a reason"


def test_a_file_before_an_interrupted_stop_waits_for_the_next_sweep_at_most(
    deployment: Deployment,
) -> None:
    # Given a run outside of a window, a stop whose command was killed, a file that arrives, and the end of the run
    run = deployment.glue.start_job_run(JobName="stream-job")["JobRunId"]
    stream = deployment.ledger.stream
    stream.begin_run(run, deployment.now)
    assert act(deployment, "stop")["stopping"] == {"1": [run]}
    event = batch(message("m1", s3_record("orders/urgent/a.ndjson")))
    assert failures(route(event, deployment.services)) == []
    stream.end()
    deployment.glue.runs["stream-job"][run] = "SUCCEEDED"
    # When, Then
    deployment.wait(5 * MINUTE)
    assert sweep(deployment.services)["repointed"] == 0
    assert deployment.glue.runs["stream-job"] == {run: "SUCCEEDED", "jr_2": "RUNNING"}


def test_a_young_manifest_raises_no_alarm_while_the_run_is_ending_and_starts_none_without_a_pointer(
    deployment: Deployment,
) -> None:
    # Given a run that has reported its end, but that Glue has not ended yet, and a file that arrived after the report
    run = deployment.glue.start_job_run(JobName="stream-job")["JobRunId"]
    deployment.ledger.stream.begin_run(run, deployment.now)
    deployment.ledger.stream.end()
    assert redelivered(deployment)
    # When, Then
    assert sweep(deployment.services)["repointed"] == 0
    # And when its pointer was read, and a fault of the environment followed, another run would have nothing to read
    deployment.glue.runs["stream-job"][run] = "SUCCEEDED"
    for key in deployment.keys("control", "inbox"):
        deployment.services.s3.delete_object(Bucket="control", Key=key)
    sweep(deployment.services)
    assert runs(deployment) == ["SUCCEEDED"]


def test_a_slow_start_is_not_a_failure(deployment: Deployment) -> None:
    act(deployment, "start")
    for _ in range(30):
        deployment.wait(MINUTE)
        assert act(deployment, "watch")["running"]
    assert deployment.ledger.stream.get().starts == 1


@pytest.mark.parametrize("is_repeated", [False, True], ids=["", "the request was repeated by the client"])
def test_a_person_starts_a_stream_whose_run_is_coming_up(deployment: Deployment, is_repeated: bool) -> None:
    # Given an ended run, and a started run that has recorded no heartbeat yet
    deployment.ledger.stream.begin_run("jr_0", deployment.now)
    deployment.ledger.stream.end()
    deployment.faults.repeat = len(deployment.faults.writes) + 2 if is_repeated else None
    assert act(deployment, "start")["running"]
    assert deployment.faults.writes[-1] == ("start_job_run" if is_repeated else "update_item")
    # When a person starts it, Then it is not mistaken for an ending run, and will see later files
    assert stream_control({"action": "start", "manual": True}, deployment.services)["running"]
    assert not redelivered(deployment)
    assert runs(deployment) == ["RUNNING"]


def test_a_run_that_another_caller_has_just_started_sees_the_file(deployment: Deployment) -> None:
    # Given a stream whose last run has ended, and another caller that starts the next one at the same time
    stream, start = deployment.ledger.stream, GlueStreamRuns.start
    stream.begin_run("jr_0", deployment.now)
    stream.end()

    def start_second(runs: GlueStreamRuns, *given: Any) -> str | None:
        started = start(runs, *given)
        assert started is not None
        stream.count_start(stream.get(), started, deployment.now)
        return start(runs, *given)

    deployment.patch.setattr(GlueStreamRuns, "start", start_second)
    assert not redelivered(deployment)
