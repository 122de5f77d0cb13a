"""Settings of a stage as a whole: ``alarms``, ``encryption``, ``protection``, ``quota``, ``spark``, ``verify``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from lake.settings.declaration import KMS_KEY, Choice, Range, Text

ADDRESS = re.compile(r"[^@\s,;]+@[^@\s,;]+\.[^@\s,;]+")
VERIFY_START = "cron(0 13 * * ? *)"
"""Start of the daily verification, in ``time_zone``: after the night. Only dates whose work is over are verified."""
KEPT_VERSION_DAYS = 30
"""Days for which ``protection.versions`` keeps a replaced or deleted object: a month in which a person notices."""


class NotifyQuarantine(StrEnum):
    """What in the quarantine of an execution that succeeded is worth a notification."""

    NEVER = "never"
    FILES = "files"
    LINES = "lines"


@dataclass(frozen=True, slots=True)
class AlarmSettings:
    """Which outcomes reach a person. A failure always does."""

    email: Annotated[
        str,
        Text(ADDRESS, "one address, such as data@example.com", or_empty=True),
        "Address that the stack subscribes to the topic of the alarms, with one mail to confirm it; empty: none.",
    ] = ""
    notify_quarantine: Annotated[
        str,
        Choice(tuple(choice.value for choice in NotifyQuarantine)),
        "What an execution that succeeded notifies people of: never; files: files that could not be read as a whole; "
        "lines: rejected lines as well.",
    ] = NotifyQuarantine.FILES.value
    daily_dollars: Annotated[
        float,
        Range(0, 10_000_000, "US dollars"),
        "Cost of the job runs of one day (UTC) above which the alarm DailyDollars is raised; 0: there is no such "
        "alarm.",
    ] = 100
    max_quarantined_share: Annotated[
        float,
        Range(0, 1, "share from 0 to 1"),
        "Share of a dataset's lines, or of its files, in the quarantine after an execution, or of the files of an hour "
        "that no rule takes, above which an alarm is raised; 1: there is no such alarm.",
    ] = 0.05


@dataclass(frozen=True, slots=True)
class EncryptionSettings:
    """The keys with which AWS encrypts what the stack stores."""

    kms_key: Annotated[
        str,
        KMS_KEY,
        "ARN of a symmetric KMS key in the stack's account and region, for its buckets, ledger, queues, topic and "
        "logs; empty: the keys of the services.",
    ] = ""
    bootstrap_key: Annotated[
        str,
        KMS_KEY,
        "ARN of your KMS key that encrypts the files of 'cdk bootstrap', for the jobs' right to read their code; "
        "empty: the key of the service does.",
    ] = ""


@dataclass(frozen=True, slots=True)
class ProtectionSettings:
    """What makes a wrong deletion recoverable or impossible. The protocol needs none of it."""

    versions: Annotated[
        bool,
        f"Whether lake, quarantine and control keep what was overwritten or deleted for {KEPT_VERSION_DAYS} days. On "
        "in a stage called prod.",
    ] = False
    deletion: Annotated[bool, "Whether DynamoDB refuses to delete the ledger. On in a stage called prod."] = False


@dataclass(frozen=True, slots=True)
class QuotaSettings:
    """What this stage may use of the account's quotas of AWS Glue, which 'hybrid-router doctor' shows."""

    dpus: Annotated[
        int,
        Range(1, 1_000_000, "DPUs"),
        "DPUs of all job runs together; those of the streaming jobs on Glue are kept free for urgent files.",
    ] = 500
    job_runs: Annotated[
        int,
        Range(2, 100_000),
        "Job runs at the same time; one of them is kept free for each streaming job on Glue.",
    ] = 50


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """What Spark records about its own work."""

    ui_logs: Annotated[
        bool,
        "Whether Spark's event logs of every job run are kept in the control bucket for 30 days, for "
        "Spark's history server or the page of Glue.",
    ] = False


@dataclass(frozen=True, slots=True)
class VerifySettings:
    """The daily proof of published data from its input files."""

    share: Annotated[
        float,
        Range(0, 1, "share from 0 to 1"),
        "Share of the published manifests that are compared every day at 13:00, chosen by their ids; 0: nothing is "
        "scheduled.",
    ] = 0.0
