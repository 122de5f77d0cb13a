"""Builds and parses all S3 keys of the system, which no other module does. S3 URIs, and listings under a prefix."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lake.aws_types import ListObjectsV2OutputTypeDef, ObjectTypeDef, S3Client
from lake.errors import InvalidInputError
from lake.shards import FIRST_SHARD

if TYPE_CHECKING:
    from lake.manifest import Partition


MANIFESTS = "manifests/"
INBOX = "inbox/"
"""Inbox of the first shard of the stream lane: one pointer per manifest, and another one where a pointer was lost."""
OTHER_INBOXES = "inbox-"
URGENT = "urgent-"
"""Prefix of the names of pointers to urgent manifests, in each inbox."""
COMMITS = "commits/"
EXCLUSIONS = "exclusions/"
RESULTS = "results/"
PLANS = "plans/"
DENIALS = "denials/"
INTENTS = "intents/"
PARTS = "parts/"
DIVISIONS = "divisions/"
SWEEP = "sweep/"
VERIFICATIONS = "verify/"
RESUBMISSIONS = "resubmissions/"
BATCHES = "tables/"
"""Documents of the batches that bring published generations into Iceberg tables."""
TABLES = "_tables/"
"""Prefix in the lake for the metadata of Iceberg tables; no dataset's name begins with an underscore."""
SPARK_LOGS = "spark-logs/"
"""Spark's event logs; on EMR Serverless the logs of drivers and executors as well."""
PLAN_AHEAD_EXECUTION = "plan-ahead"
"""Used as the name of an execution by the hourly dry run of ``plan`` for the next night: each summary replaces the
one before."""
DRY_RUN_PREFIX = "dry-run-"
"""Prefix of the names under which ``plan`` writes summaries that belong to no execution."""
COMPLETE_MARKER = "_complete.json"
"""Name of an hour's marker in the lake. Spark, Hive, Athena and Trino do not read objects whose names begin with an
underscore."""
PREFLIGHT = "_preflight"
"""Prefix of the preflight's uploads in each bucket that the jobs write to."""
CANARY = "_canary/"
"""Prefix of the objects that ``doctor --canary`` writes to input, lake and quarantine, and below the results of the
control bucket. They belong to no dataset, and the canary removes them at its end."""


def date_prefix(partition: Partition) -> str:
    """Prefix of the dataset's partitions on the date of this one; the same in lake and quarantine."""
    return f"{partition.dataset}/date={partition.date}/"


def partition_prefix(partition: Partition) -> str:
    """Hive-style prefix of a partition; the same in lake and quarantine."""
    return f"{date_prefix(partition)}hour={partition.hour:02d}/"


def complete_marker_key(partition: Partition) -> str:
    return f"{partition_prefix(partition)}{COMPLETE_MARKER}"


def is_complete_marker(key: str) -> bool:
    """Whether a key of the lake is the marker of some hour of a dataset."""
    return re.fullmatch(rf"[^/]+/date=[0-9-]{{10}}/hour=[0-9]{{2}}/{re.escape(COMPLETE_MARKER)}", key) is not None


def manifest_prefix(partition: Partition, manifest: str) -> str:
    return f"{partition_prefix(partition)}{manifest}-g"


def lake_prefix(partition: Partition, manifest: str, generation: int) -> str:
    """Prefix of all objects of one generation of a manifest; the same in lake and quarantine."""
    return f"{manifest_prefix(partition, manifest)}{generation}-"


def lake_key(partition: Partition, manifest: str, generation: int, number: int) -> str:
    """Key of a Parquet file; ``number`` is unique within the generation."""
    return f"{lake_prefix(partition, manifest, generation)}{number:05d}.parquet"


def quarantine_key(partition: Partition, manifest: str, generation: int, number: int) -> str:
    """Key of a quarantine object (JSON lines); ``number`` as for ``lake_key``."""
    return f"{lake_prefix(partition, manifest, generation)}{number:05d}.jsonl"


def parse_generation(key: str) -> tuple[str, int] | None:
    """(manifest id, generation) of a lake or quarantine key; None for any other key."""
    manifest, _, rest = key.rsplit("/", 1)[-1].partition("-g")
    generation, _, tail = rest.partition("-")
    if not manifest or not tail or not generation.isdigit():
        return None
    return manifest, int(generation)


def is_own_key(key: str, partition: Partition, manifest: str, generation: int) -> bool:
    """Whether the whole ``key``, not only its last segment, is one of ``lake_key`` or ``quarantine_key``."""
    prefix = re.escape(lake_prefix(partition, manifest, generation))
    return re.fullmatch(rf"{prefix}[0-9]{{5,}}\.(parquet|jsonl)", key) is not None


def preflight_key(run: str) -> str:
    """Key of the upload that shows a run whether it may write to a bucket; it is never completed."""
    return f"{PREFLIGHT}/{run}"


def canary_key(name: str) -> str:
    return f"{CANARY}{name}"


def canary_report_key(run: str) -> str:
    return f"{RESULTS}{CANARY}{run}.json"


def manifest_key(manifest: str) -> str:
    return f"{MANIFESTS}{manifest[:8]}/{manifest}.json"


def part_key(part: str) -> str:
    return f"{PARTS}{part[:8]}/{part}.json"


def division_key(collection: str, nonce: str) -> str:
    """Key of a division document of a collection, ``<hour>/<name>``; ``nonce`` is random."""
    return f"{DIVISIONS}{collection}-{nonce}.json"


def manifest_day_prefix(day: str) -> str:
    """Prefix of the documents of manifests that were made on a day (``YYYY-MM-DD``, UTC): ids begin with it."""
    return f"{MANIFESTS}{day.replace('-', '')}"


def manifest_of_key(key: str) -> str | None:
    """Id of the manifest whose document has this key; None for any other key."""
    manifest = key.rsplit("/", 1)[-1].removesuffix(".json")
    return manifest if key == manifest_key(manifest) else None


def inbox(shard: str) -> str:
    """Prefix of the pointers of a shard, with a slash at its end. No inbox is inside another one."""
    return INBOX if shard == FIRST_SHARD else f"{OTHER_INBOXES}{shard}/"


def pointer_key(manifest: str, nonce: str, *, urgent: bool, shard: str = FIRST_SHARD) -> str:
    """Key of a pointer in the inbox of a shard. ``nonce`` is random: a run deletes only what it has read."""
    return f"{pointer_prefix(manifest, urgent=urgent, shard=shard)}{nonce}.json"


def pointer_prefix(manifest: str, *, urgent: bool, shard: str = FIRST_SHARD) -> str:
    """Prefix of all pointers to a manifest in an inbox. Pointers sort by the ids of their manifests, so by age."""
    return f"{inbox(shard)}{URGENT if urgent else ''}{manifest}-"


def manifest_of_pointer(key: str) -> str | None:
    """Id of the manifest that a pointer names by its key, in any inbox; None for any other key."""
    return key.rpartition("/")[2].removeprefix(URGENT).rpartition("-")[0] or None


def sweep_key(listing: str) -> str:
    return f"{SWEEP}{listing}.json"


def verification_key(date: str, *, early: bool) -> str:
    """``date`` is ``YYYY-MM-DD``, UTC. ``early``: verified before the night had converted all of the date."""
    return f"{VERIFICATIONS}{date}{'-early' if early else ''}.json"


def batch_key(dataset: str, number: int, nonce: str) -> str:
    """Key of a batch's document; a random ``nonce`` keeps two processes from writing the same key."""
    return f"{BATCHES}{dataset}/{number:08d}-{nonce}.json"


def table_location(lake_bucket: str, dataset: str) -> str:
    """URI of the folder of a dataset's Iceberg table, which holds no file of a conversion."""
    return f"s3://{lake_bucket}/{TABLES}{dataset}"


def intent_key(name: str) -> str:
    """Key of an intent document. ``name`` is unique and begins with its time, so that intents sort by age."""
    return f"{INTENTS}{name}.json"


def resubmission_key(name: str) -> str:
    return f"{RESUBMISSIONS}{name}.json"


def resubmitted_lines_key(name: str) -> str:
    """Key of the lines of a resubmission, which are the file of a manifest."""
    return f"{RESUBMISSIONS}{name}.ndjson"


def commit_key(manifest: str, generation: int, attempt: int, nonce: str) -> str:
    """Key of an attempt's commit document; a random ``nonce`` keeps a late duplicate from overwriting it."""
    return f"{COMMITS}{manifest[:8]}/{manifest}-g{generation}-a{attempt}-{nonce}.json"


def exclusions_key(manifest: str, generation: int, attempt: int, nonce: str) -> str:
    """Key of the exclusions document of an attempt: files that the next attempt skips, because they could not be read
    to their end."""
    return f"{EXCLUSIONS}{manifest[:8]}/{manifest}-g{generation}-a{attempt}-{nonce}.json"


def result_key(manifest: str, generation: int) -> str:
    """Key of the result document of a generation: counts of the input and the output, per file."""
    return f"{RESULTS}{manifest[:8]}/{manifest}-g{generation}.json"


def plan_summary_key(execution: str) -> str:
    return f"{PLANS}{execution}/plan.json"


def plan_index_key(execution: str, nonce: str) -> str:
    """Key of the JSON array that the distributed Map reads: one item per run. Each invocation of ``plan`` has a random
    ``nonce``, so that two invocations for one execution do not overwrite each other's runs."""
    return f"{PLANS}{execution}/{nonce}/index.json"


def run_key(execution: str, nonce: str, number: int) -> str:
    return f"{PLANS}{execution}/{nonce}/runs/{number:05d}.json"


def denial_key(run: str) -> str:
    """Key of the document that lists the manifests which the job runs of a run document were denied."""
    return f"{DENIALS}{run.removeprefix(PLANS)}"


def verdict_key(execution: str) -> str:
    return f"{PLANS}{execution}/verdict.json"


REPORT_PAGE = "report.html"
REPORT_INDEX = f"{PLANS}index.html"
"""The page about the last days. It is next to the folders of the executions, and links to their reports."""


def report_key(execution: str) -> str:
    return f"{PLANS}{execution}/{REPORT_PAGE}"


@dataclass(frozen=True, slots=True)
class S3Uri:
    bucket: str
    key: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_s3_uri(uri: object) -> S3Uri:
    """Read ``s3://bucket/key``, or ``s3a://bucket/key`` as Spark writes it; raises ``InvalidInputError``."""
    scheme, _, rest = uri.partition("://") if isinstance(uri, str) else ("", "", "")
    bucket, _, key = rest.partition("/")
    # A lone surrogate is a byte of the command line that is not UTF-8, or half a pair of a document.
    if scheme not in ("s3", "s3a") or not bucket or not key or LONE_SURROGATE.search(rest):
        raise InvalidInputError(f"{uri!r} is not a valid S3 URI: pass s3://bucket/key")
    return S3Uri(bucket, key)


def list_objects(s3: S3Client, bucket: str, prefix: str = "", after: str = "") -> Iterator[ObjectTypeDef]:
    """The objects whose keys begin with ``prefix`` and come after ``after``. It keeps one page in memory.

    Raises botocore's errors.
    """
    start = {"StartAfter": after}
    while True:
        page = s3.list_objects_v2(Bucket=bucket, Prefix=prefix, **start)  # type: ignore[arg-type]
        found = page.get("Contents", [])
        yield from found
        if not page["IsTruncated"]:
            return
        start = {"StartAfter": found[-1]["Key"]} if found else after_empty_page(page)


def after_empty_page(page: ListObjectsV2OutputTypeDef) -> dict[str, str]:
    """The parameter of the request after a page without keys. In a bucket with versions, S3 returns such a page, not
    the last one, where it skips many deleted objects."""
    return {"ContinuationToken": page["NextContinuationToken"]}


ARCHIVES = ("GLACIER", "DEEP_ARCHIVE")
"""Storage classes whose objects must be restored before they can be read (Amazon S3 User Guide, "Working with archived
objects")."""


def is_archived(version: Mapping[str, Any]) -> bool:
    """Whether a version, listed with ``RestoreStatus``, has to be restored before it can be read."""
    return version.get("StorageClass") in ARCHIVES and "RestoreExpiryDate" not in version.get("RestoreStatus", {})


def list_versions(s3: S3Client, bucket: str, key: str) -> Iterator[Any]:
    """All versions of one key, newest first, with ``RestoreStatus`` if they are archived. Raises botocore's errors."""
    markers: dict[str, Any] = {}
    while True:
        page = s3.list_object_versions(Bucket=bucket, Prefix=key, OptionalObjectAttributes=["RestoreStatus"], **markers)
        yield from (item for item in page.get("Versions", []) if item["Key"] == key)
        # A key is listed before the longer keys that it begins.
        if not page["IsTruncated"] or page["NextKeyMarker"] != key:
            return
        markers = {"KeyMarker": page["NextKeyMarker"], "VersionIdMarker": page["NextVersionIdMarker"]}
