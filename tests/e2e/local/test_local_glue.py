"""Glue runs on the local cloud: real processes with Glue's states and limits, ended as Glue ends them."""

from __future__ import annotations

import io
import zipfile

import pyarrow.parquet as pq
import pytest

from local.processes import has_ended
from tests.e2e.waiting import wait_for


def test_spark_job_reads_and_writes_s3_with_no_setting_of_its_own_but_the_region(probe):
    # Given a file, and a zip with a module for the job
    s3, bucket = probe.client("s3"), probe.outputs["Bucket"]
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as modules:
        modules.writestr("extra_module.py", "SUFFIX = '!'")
    s3.put_object(Bucket=bucket, Key="code/extra.zip", Body=archive.getvalue())
    s3.put_object(Bucket=bucket, Key="spark/in/a.txt", Body="grüße\nb\n".encode())
    # When the job runs
    arguments = {"task": "spark", "source": f"s3a://{bucket}/spark/in/", "target": f"s3://{bucket}/spark/out"}
    run = probe.ended_run(
        "probe-batch", probe.start_run("probe-batch", extra_py_files=f"s3://{bucket}/code/extra.zip", **arguments)
    )
    # Then its output is on S3
    assert run["JobRunState"] == "SUCCEEDED", run
    assert run["CompletedOn"] >= run["StartedOn"]
    keys = [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket, Prefix="spark/out/part")["Contents"]]
    tables = [pq.read_table(io.BytesIO(s3.get_object(Bucket=bucket, Key=key)["Body"].read())) for key in keys]
    assert [value for table in tables for value in table["line"].to_pylist()] == ["GRÜSSE!", "B!"]


def test_failed_script_gives_its_exception_as_the_error_message_and_leaves_a_log(probe):
    # When a script raises
    run_id = probe.start_run("probe-batch", task="fail")
    run = probe.ended_run("probe-batch", run_id)
    # Then the run's record has the message, and the log has the stack trace
    assert (run["JobRunState"], run["ErrorMessage"]) == ("FAILED", "ValueError: asked to fail")
    assert "Traceback" in (probe.cloud.logs_dir / "probe-batch" / f"{run_id}.log").read_text()


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


def test_timeout_of_the_run_overrides_the_jobs_and_kills(probe):
    # When a run with a timeout of its own hangs; the script must have started before its time is over
    run_id = probe.start_run(
        "probe-batch", timeout=15, task="hang", started=f"{probe.outputs['Bucket']}/hang/timeout.json"
    )
    run = probe.ended_run("probe-batch", run_id)
    # Then it ends as TIMEOUT, and all of its processes have ended
    assert run["JobRunState"] == "TIMEOUT"
    assert all(map(has_ended, probe.object_json("hang/timeout.json")))
