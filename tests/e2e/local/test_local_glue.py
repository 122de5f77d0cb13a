"""Glue runs on the local cloud: real processes with Glue's states and limits, ended as Glue ends them."""

import pytest

from local.processes import has_ended
from tests.e2e.waiting import wait_for


def test_stop_ends_all_processes_of_the_run_and_allows_another_run(probe):
    # Given a streaming run that hangs, with a child in a process group of its own
    bucket = probe.outputs["Bucket"]
    run_id = probe.start_run("probe-stream", task="hang", started=f"{bucket}/hang/stop.json")
    pids = probe.object_json("hang/stop.json")
    assert not any(map(has_ended, pids))
    glue = probe.client("glue")
    # When the job is started again, then it is refused
    with pytest.raises(glue.exceptions.ConcurrentRunsExceededException):
        probe.start_run("probe-stream", task="succeed")
    # When the run is stopped
    answer = glue.batch_stop_job_run(JobName="probe-stream", JobRunIds=[run_id, "jr_unknown"])
    # Then all of its processes end, and another run can start
    assert [entry["JobRunId"] for entry in answer["SuccessfulSubmissions"]] == [run_id]
    assert [entry["JobRunId"] for entry in answer["Errors"]] == ["jr_unknown"]
    assert probe.ended_run("probe-stream", run_id)["JobRunState"] == "STOPPED"
    wait_for("its processes to end", lambda: all(map(has_ended, pids)))
    assert (
        probe.ended_run("probe-stream", probe.start_run("probe-stream", task="succeed"))["JobRunState"] == "SUCCEEDED"
    )
