"""Verification by the batch job: proves a share of past dates' published data from the input files.

The tasks of the verification run in the Python workers of Spark.
"""

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lake.aws_types import S3Client
from lake.dataset_rules import named_datasets
from lake.documents import encode_document, put_document
from lake.errors import HybridRouterError, InvalidInputError
from lake.layout import VERIFICATIONS, list_objects, verification_key
from lake.settings.declaration import is_date
from lake.texts import format_count
from lake.time import iso_utc
from transform.clients import s3_client
from transform.outcome import ALARM
from transform.spark_job import JobFailedError, failure_reason
from transform.task_model import ConversionContext
from verify.find_files import TimeOverError
from verify.hours import TOO_LATE, Effort, HoursCheck
from verify.manifest_check import SideDigest
from verify.report import HourOutcome, HourReport
from verify.stack import Hours, Stack

DUE = "due"
MAX_DUE_DATES = 3
"""Maximum number of dates in one run; after a longer pause, older dates are skipped."""
MAX_UNREADABLE = 20
"""Maximum number of datasets that may be unreadable before the run fails."""
TIME_SHARE = 0.9
"""Share of ``batch.run_timeout_minutes`` after which no page is listed and no manifest begun; at the timeout Glue ends
a run without a report."""


def verify_dates(context: ConversionContext, which: str) -> int:
    """Compare a share of the published data (the setting ``verify.share``) on the dates that ``which`` names.

    The outcome of each date is a document in the control bucket, and a log line for each hour with files. ``which`` is
    a date, or ``due`` for the last settled dates (UTC) without a document. Returns the exit code: 1 if an hour differs,
    or if a part of the share could not be compared. Raises ``InvalidInputError`` if ``which`` is neither, if the ledger
    no longer has all rows of the date, or if ``verify.share`` is 0.
    """
    settings = context.settings
    if not settings.verify.share:
        raise InvalidInputError("verify.share is 0, so there is nothing to compare: set it and deploy again")
    now = context.clock()
    documents = list_objects(context.s3, context.resources.control_bucket, VERIFICATIONS)
    verified = {item["Key"].removeprefix(VERIFICATIONS).removesuffix(".json") for item in documents}
    last = last_settled_date(now, settings.schedule.settled_after)
    if which == DUE:
        dates = due_dates(last, verified)
    else:
        if not is_date(which):
            raise InvalidInputError(
                f"--verify = {which!r} is not a valid date: set it to {DUE}, or to a date such as 2026-11-20"
            )
        dates = [which]
        settings.ledger.check_kept(f"{dates[0]}T00", context.ledger.arrivals.expiries(), now)
    effort = Effort(
        share=settings.verify.share,
        run_tasks=partial(run_tasks, context.spark, context.region),
        stop_at=now + timedelta(minutes=settings.batch.run_timeout_minutes) * TIME_SHARE,
    )
    found = [DateCheck(context, day, early=day > last, effort=effort).run() for day in dates]
    context.log(f"verify: dates: {', '.join(dates) or 'none is due'}")
    if all(found):
        return 0
    wrong = ", ".join(day for day, is_proven in zip(dates, found, strict=True) if not is_proven)
    context.log(
        f"verify: not proven: {wrong}; for each hour in the lines above run "
        "'hybrid-router verify --dataset <name> --from <hour> --to <hour>'"
    )
    return 1


def due_dates(last: str, verified: Collection[str]) -> list[str]:
    """Those of the last ``MAX_DUE_DATES`` dates up to ``last`` that are not in ``verified``, oldest first. Pure."""
    dates = (str(date.fromisoformat(last) - timedelta(days=days)) for days in reversed(range(MAX_DUE_DATES)))
    return [day for day in dates if day not in verified]


def last_settled_date(now: datetime, settled_after: timedelta) -> str:
    """The last date (UTC) whose last file has the age ``schedule.settled_after`` at ``now`` (aware). Pure.

    The sweep reports manifests that are open for longer.
    """
    return ((now.astimezone(UTC) - settled_after).date() - timedelta(days=1)).isoformat()


@dataclass(frozen=True, slots=True)
class DateCheck:
    context: ConversionContext
    date: str
    """``YYYY-MM-DD``, UTC."""
    early: bool
    """Whether the night may not have converted all of the date."""
    effort: Effort

    @property
    def key(self) -> str:
        return verification_key(self.date, early=self.early)

    def run(self) -> bool:
        """Compare the date and write its document, unless there was no time for any dataset: then the date stays due.

        True if everything in the share was compared and nothing differs.
        """
        context, begun_at = self.context, self.context.clock()
        names = list(named_datasets(context.settings.datasets) | set(context.ledger.datasets.names()))
        # Shuffled, so that time is not lacking for the same datasets every day.
        random.shuffle(names)
        reports = self._reports(names)
        left = len(names) - len(reports)
        if not reports and left:
            return False
        body = {
            "date": self.date,
            "share": self.effort.share,
            "run": context.run,
            "begun_at": iso_utc(begun_at),
            "ended_at": iso_utc(context.clock()),
            "datasets": {
                name: [report.to_json() for report in hours] for name, hours in sorted(reports.items()) if hours
            },
            "datasets_left": left,
        }
        put_document(context.s3, context.resources.control_bucket, self.key, encode_document(body))
        hours = [report for items in reports.values() for report in items]
        missed = sum(report.missed for report in hours)
        if missed:
            not_compared = format_count(missed, "manifest was", "manifests were")
            document = f"s3://{context.resources.control_bucket}/{self.key}"
            context.log(f"{ALARM} verify {self.date}: {not_compared} not compared; the reasons are in {document}")
        differs = any(report.outcome == HourOutcome.DIFFERS for report in hours)
        return not (left or missed or differs)

    def _reports(self, names: Sequence[str]) -> dict[str, list[HourReport]]:
        """The reports of the datasets that could be compared before the run's time was over; logs all others.

        After ``MAX_UNREADABLE`` unreadable datasets, raises the error of the next one: it does not belong to a dataset.
        """
        reports: dict[str, list[HourReport]] = {}
        for number, name in enumerate(names):
            try:
                if self.effort.stop_at is not None and self.context.clock() >= self.effort.stop_at:
                    raise TimeOverError
                reports[name] = self._check_dataset(name)
            except TimeOverError:
                not_compared = format_count(len(names) - number, "dataset was", "datasets were")
                self.context.log(f"{ALARM} verify {self.date}: {not_compared} {TOO_LATE}")
                break
            except (BotoCoreError, ClientError, HybridRouterError, OSError) as error:
                if number - len(reports) == MAX_UNREADABLE:
                    raise
                self.context.log(f"{ALARM} verify {self.date}: the dataset {name} could not be compared: {error}")
        return reports

    def _check_dataset(self, dataset: str) -> list[HourReport]:
        context = self.context
        stack = Stack.of(context.s3, context.ledger, context.resources, context.settings, dataset, context.clock)
        hours = Hours(dataset, f"{self.date}T00", f"{self.date}T23")
        reports = []
        for report in HoursCheck(stack, hours, self.effort, context.log).run():
            if report.is_empty:
                continue
            reports.append(report)
            line = f"verify {dataset} {report}"
            if report.outcome == HourOutcome.DIFFERS:
                differences = format_count(len(report.differences), "difference")
                document = f"s3://{context.resources.control_bucket}/{self.key}"
                line = (
                    f"{ALARM} {line}; {differences} in {document}, the first: {report.differences[0]}; to see where, "
                    f"run 'hybrid-router verify --dataset {dataset} --from {report.hour} --to {report.hour}'"
                )
            context.log(line)
        return reports


Digest = Callable[[S3Client, Any], SideDigest]


def run_tasks(spark: SparkSession, region: str, function: Digest, tasks: Sequence[Any]) -> Iterable[SideDigest]:
    """The results of ``function`` for the tasks, each in a partition of a Spark job. Thread-safe.

    ``region`` is the region of the buckets. Raises ``JobFailedError`` if a task failed as often as Spark allows.
    """
    if not tasks:
        return []
    try:
        partitions = spark.sparkContext.parallelize(tasks, len(tasks))
        return partitions.mapPartitions(lambda part: map(partial(function, s3_client(region)), part)).collect()
    except (Py4JError, PySparkException) as error:
        raise JobFailedError(failure_reason(str(error))) from error
