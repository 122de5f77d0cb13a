"""The emulator's process: ``python -m local.emulator_process`` with the arguments of ``main``.

Its standard input is a pipe that the owner, the process that started the local cloud, holds open. At its end of file
(the owner closed the cloud, or ended in any way) this process ends itself and everything it started.
"""

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path

from local import isolation, spark_jars
from local.class_archive import archive_file
from local.isolation import only_own_requests
from local.job_launch import JobProcesses, JobSettings
from local.limits import Limits
from local.processes import kill_followers


def emulator_environment(port: int, key: isolation.AccessKey, state: Path) -> dict[str, str]:
    """The whole environment of the emulator: isolated, with its files under ``state`` and one listening port.

    ``key`` is the root user's; every other identity gets its keys from the emulator.
    """
    return isolation.isolated_environment(f"http://127.0.0.1:{port}", key) | {
        "AUTH": "true",
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "127.0.0.1",
        "MINISTACK_REGION": isolation.REGION,
        "MINISTACK_ACCOUNT_ID": isolation.ACCOUNT,
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(state / "s3"),
        "STATE_DIR": str(state / "emulator"),
        "TMPDIR": str(state / "tmp"),
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
        # The emulator removes containers at start; it must not find this machine's containers.
        "DOCKER_HOST": f"unix://{state}/no-docker",
        "LOG_LEVEL": "INFO",
    }


def main(socket: int, port: int, state: Path) -> None:
    """Serve until standard input ends; does not return.

    ``socket``: descriptor of an inherited socket that is bound to ``port``. ``state``: the folder for all files of the
    cloud.
    """
    endpoint = f"http://127.0.0.1:{port}"

    def limits() -> Limits:
        return Limits.read(state)

    def fetch(access_key: isolation.AccessKey, bucket: str, key: str, target: Path) -> None:
        isolation.client("s3", endpoint, access_key).download_file(bucket, key, str(target))

    job_settings = JobSettings(
        endpoint=endpoint,
        runs=state / "runs",
        logs=state / "logs",
        jars=spark_jars.resolve(),
        classes=archive_file(),
        limits=limits,
    )
    processes = JobProcesses()
    threading.Thread(target=_end_with_owner, args=(processes,), daemon=True).start()

    # The emulator reads the environment when it is imported.
    from local import emulator_patches  # noqa: PLC0415
    from local.emulator_patches.identities.roles import session_key  # noqa: PLC0415
    from local.engines import emr_serverless, glue  # noqa: PLC0415

    jobs = (job_settings, session_key, fetch, processes)
    engines = (lambda: glue.patch(glue.GlueRuns(*jobs)), lambda: emr_serverless.patch(emr_serverless.EmrRuns(*jobs)))
    emulator_patches.install(engines, logs=state / "logs", runtime_dir=state / "lambda-runtime", limits=limits)
    asyncio.run(_serve(socket, port))


async def _serve(socket: int, port: int) -> None:
    from hypercorn.asyncio import serve  # noqa: PLC0415
    from hypercorn.config import Config  # noqa: PLC0415
    from ministack.app import app  # type: ignore[import-untyped]  # noqa: PLC0415

    config = Config()
    config.bind = [f"fd://{socket}"]
    config.keep_alive_timeout = 75
    config.accesslog = None
    await serve(only_own_requests(app, port), config)


def _end_with_owner(processes: JobProcesses) -> None:
    # Not sys.stdin: this thread would hold the lock of its buffer, and the interpreter could not finish.
    while os.read(0, 1):
        pass
    processes.kill_all()
    kill_followers(os.getpid())
    os._exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
