"""Spark's daemon of Python workers, with the run's fault installed (``spark.python.daemon.module``)."""

import os

from pyspark import daemon

from tests.chaos.glue_process import PLAN_VARIABLE, delay_reads_until_renewal, install

if __name__ == "__main__":
    install(os.environ[PLAN_VARIABLE])
    delay_reads_until_renewal(os.environ[PLAN_VARIABLE])
    daemon.manager()  # type: ignore[no-untyped-call]
