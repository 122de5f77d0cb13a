"""Runs the tasks of a verification in the Python workers of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from transform.clients import s3_client
from transform.spark_job import JobFailedError, failure_reason
from verify.digests import SideDigest

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from pyspark.sql import SparkSession

    Digest = Callable[[S3Client, Any], SideDigest]


class SparkTasks:
    """Each task is a partition of a Spark job; several threads may run jobs at the same time.

    ``region`` is that of the buckets.
    """

    def __init__(self, spark: SparkSession, region: str) -> None:
        self._context = spark.sparkContext
        self._region = region

    def run(self, function: Digest, tasks: Sequence[Any]) -> Iterable[SideDigest]:
        """The function's result for each task.

        Raises
        ------
        JobFailedError
            A task failed as often as Spark allows.
        """
        if not tasks:
            return []
        try:
            return (
                self._context.parallelize(tasks, len(tasks))
                .mapPartitions(partial(_run, self._region, function))
                .collect()
            )
        except (Py4JError, PySparkException) as error:
            raise JobFailedError(failure_reason(str(error))) from error


def _run(region: str, function: Digest, tasks: Iterable[Any]) -> Iterator[SideDigest]:
    s3 = s3_client(region)
    for task in tasks:
        yield function(s3, task)
