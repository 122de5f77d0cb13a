"""Spark's daemon of Python workers, with the run's fault in it (``spark.python.daemon.module``)."""

import os

from pyspark import daemon

from tests.chaos.glue_process import VARIABLE, install, work_until_renewed

if __name__ == "__main__":
    install(os.environ[VARIABLE])
    work_until_renewed(os.environ[VARIABLE])
    daemon.manager()  # type: ignore[no-untyped-call]
