"""The local cloud starts on loopback, next to others, and ends everything it started."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest

from local.cloud import LocalCloud, _claim
from local.errors import LocalCloudError
from local.processes import has_ended
from tests.e2e.waiting import wait_for

_HANG = "import os, pathlib, sys, time\npathlib.Path(sys.argv[-1]).write_text(str(os.getpid()))\ntime.sleep(600)\n"
_OWNER = """
import sys, time
from pathlib import Path
from local.cloud import LocalCloud, _claim
from local.isolation import BUCKET_PLACE
from tests.roles import create_unlimited_role

with LocalCloud.start(Path(sys.argv[1])) as cloud:
    s3, glue = cloud.client("s3"), cloud.client("glue")
    s3.create_bucket(Bucket="code", CreateBucketConfiguration=BUCKET_PLACE)
    s3.put_object(Bucket="code", Key="job.py", Body=sys.argv[2].encode())
    command = {"Name": "gluestreaming", "ScriptLocation": "s3://code/job.py"}
    glue.create_job(Name="hang", Role=create_unlimited_role(cloud.client("iam"), "hang"), Command=command)
    glue.start_job_run(JobName="hang", Arguments={"--pid-file": sys.argv[3]})
    print(cloud.endpoint, cloud._process.pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def owned(tmp_path):
    """A process that owns a local cloud with a running streaming job, and the ids of emulator and job."""
    pid_file = tmp_path / "pid"
    command = [sys.executable, "-c", _OWNER, str(tmp_path / "cloud"), _HANG, str(pid_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as owner:
        assert owner.stdout
        _endpoint, emulator = owner.stdout.readline().split()
        wait_for("the job to start", lambda: pid_file.exists() and pid_file.read_text())
        yield owner, int(emulator), int(pid_file.read_text())
        owner.kill()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_end_of_the_owner_ends_the_emulator_and_its_glue_runs(owned, how):
    owner, *pids = owned
    owner.send_signal(how)
    wait_for("emulator and job to end", lambda: all(map(has_ended, pids)))


def test_death_of_the_emulator_ends_its_glue_runs(owned):
    _owner, emulator, job = owned
    os.kill(emulator, signal.SIGKILL)
    wait_for("the job to end", lambda: has_ended(job))


def test_folder_of_a_killed_owner_is_claimed_until_its_processes_have_ended(owned, tmp_path):
    owner, *pids = owned
    owner.kill()

    def claim():
        with suppress(LocalCloudError):
            return _claim(tmp_path / "cloud")

    # When another cloud can claim the folder, then no process of the first one still writes into it
    with wait_for("the folder", claim):
        assert all(map(has_ended, pids))


def test_second_cloud_in_the_same_folder_is_refused_and_the_first_continues(tmp_path):
    with LocalCloud.start(tmp_path) as cloud:
        with pytest.raises(LocalCloudError, match="Another local cloud is running"):
            LocalCloud.start(tmp_path)
        assert cloud.client("s3").list_buckets()["Buckets"] == []
    with LocalCloud.start(tmp_path) as again:
        assert again.client("s3").list_buckets()["Buckets"] == []


def test_emulator_listens_on_loopback_only(tmp_path):
    with LocalCloud.start(tmp_path) as cloud:
        port = int(cloud.endpoint.rsplit(":", 1)[1])
        connections = psutil.Process(cloud._process.pid).net_connections("inet")
        listening = [connection.laddr for connection in connections if connection.status == psutil.CONN_LISTEN]
        assert listening == [("127.0.0.1", port)]
