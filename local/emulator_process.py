"""The emulator's process: ``python -m local.emulator_process`` with the arguments of ``main``.

Only this process imports the emulator, which reads the environment on import. Its standard input is a pipe that the
owner, the process that started the local cloud, holds open. At the end of the pipe (the owner closed the cloud, or
ended in any way) this process ends itself and everything it started.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack.app import app  # type: ignore[import-untyped]

from local import isolation
from local.class_archive import archive_file
from local.emulator_patches import (
    alarms,
    buckets,
    delivery_streams,
    index_lag,
    lambda_functions,
    schedules,
    service_quotas,
    state_machines,
)
from local.emulator_patches.identities import encryption_keys, requests, roles
from local.engines import emr_serverless, glue
from local.job_launch import JobRuns, JobSettings
from local.processes import kill_followers


def main(socket: int, port: int, state: Path) -> None:
    """Serve until standard input ends; does not return.

    ``socket``: descriptor of an inherited socket that is bound to ``port``. ``state``: the folder for all files of the
    cloud.
    """
    endpoint = f"http://127.0.0.1:{port}"

    def fetch(access_key: isolation.AccessKey, bucket: str, key: str, target: Path) -> None:
        isolation.client("s3", endpoint, access_key).download_file(bucket, key, str(target))

    jobs = (JobSettings(endpoint, state, archive_file()), roles.session_key, fetch)
    glue_runs, emr_runs = glue.GlueRuns(*jobs), emr_serverless.EmrRuns(*jobs)
    threading.Thread(target=_end_with_owner, args=((glue_runs, emr_runs),), daemon=True).start()
    state_machines.patch()
    glue.patch(glue_runs)
    emr_serverless.patch(emr_runs)
    lambda_functions.patch(state / "logs" / "lambda", state / "lambda-runtime")
    schedules.patch()
    buckets.patch()
    service_quotas.patch(state)
    delivery_streams.patch()
    alarms.patch()
    index_lag.patch(state)
    # These come last, because they wrap what the others replace.
    requests.record_uses(state / "logs" / "permissions.jsonl")
    roles.patch()
    requests.patch()
    encryption_keys.patch()
    asyncio.run(_serve(socket, port))


async def _serve(socket: int, port: int) -> None:
    config = Config()
    config.bind = [f"fd://{socket}"]
    config.keep_alive_timeout = 75
    config.accesslog = None
    await serve(isolation.only_own_requests(app, port), config)


def _end_with_owner(services: Iterable[JobRuns]) -> None:
    # Not sys.stdin: this thread would hold the lock of its buffer, and the interpreter could not finish.
    while os.read(0, 1):
        pass
    for runs in services:
        runs.close()
    kill_followers(os.getpid())
    os._exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
