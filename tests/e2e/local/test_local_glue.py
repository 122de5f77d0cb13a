"""Glue runs on the local cloud: real processes with Glue's states and limits, ended as Glue ends them."""

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
