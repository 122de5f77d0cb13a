"""All S3 keys of the system: no other module builds or parses one. S3 URIs, and listings under a prefix."""

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
"""Inbox of the first shard of the stream lane: one pointer per manifest, and more where one was lost."""
OTHER_INBOXES = "inbox-"
URGENT = "urgent-"
"""Begins the names of the pointers to urgent manifests, in each inbox."""
OTHER_POINTERS = "[0-9]*.json"
"""Pattern of the names of all other pointers: a manifest id begins with a digit."""
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
"""Prefix in the lake for the metadata of Iceberg tables. A dataset begins with a letter."""
SPARK_LOGS = "spark-logs/"
"""Spark's event logs; on EMR Serverless the logs of drivers and executors as well."""
PLAN_AHEAD_EXECUTION = "plan-ahead"
"""Name of the hourly dry run of ``plan`` for the next night, instead of an execution's: its summary replaces the
last one."""
COMPLETE_MARKER = "_complete.json"
"""Name of the marker of an hour in the lake. Spark, Hive, Athena and Trino do not read objects whose name begins with
an underscore."""
PREFLIGHT = "_preflight"
"""Prefix in each bucket that the jobs write to."""
CANARY = "_canary/"
"""What ``doctor --canary`` writes to input, lake and quarantine, and below the results of the control bucket. Belongs
to no dataset, and is removed at its end."""


def date_prefix(partition: Partition) -> str:
    """Prefix of all partitions of the dataset on the date of this one, the same in lake and quarantine."""
    return f"{partition.dataset}/date={partition.date}/"


def partition_prefix(partition: Partition) -> str:
    """Hive-style prefix of a partition, the same in lake and quarantine."""
    return f"{date_prefix(partition)}hour={partition.hour:02d}/"


def complete_marker_key(partition: Partition) -> str:
    return f"{partition_prefix(partition)}{COMPLETE_MARKER}"


def is_complete_marker(key: str) -> bool:
    """Whether ``complete_marker_key`` makes a key that ends like this one, which is in the lake."""
    return re.fullmatch(rf"[^/]+/date=[0-9-]{{10}}/hour=[0-9]{{2}}/{re.escape(COMPLETE_MARKER)}", key) is not None


def manifest_prefix(partition: Partition, manifest: str) -> str:
    return f"{partition_prefix(partition)}{manifest}-g"


def lake_prefix(partition: Partition, manifest: str, generation: int) -> str:
    """Prefix of all objects of one generation of one manifest, the same in lake and quarantine."""
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
    """Whether ``lake_key`` or ``quarantine_key`` makes ``key`` for this generation, and not only its last segment."""
    prefix = re.escape(lake_prefix(partition, manifest, generation))
    return re.fullmatch(rf"{prefix}[0-9]{{5,}}\.(parquet|jsonl)", key) is not None


def preflight_key(run: str) -> str:
    """Key of the upload by which a run finds out whether it may write to a bucket; it is never completed."""
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
    """Prefix of the documents of manifests made on a day: ids begin with it. ``day`` is ``YYYY-MM-DD``, UTC."""
    return f"{MANIFESTS}{day.replace('-', '')}"


def manifest_of_key(key: str) -> str | None:
    """Manifest id of the key of a manifest document; None for any other key."""
    manifest = key.rsplit("/", 1)[-1].removesuffix(".json")
    return manifest if key == manifest_key(manifest) else None


def inbox(shard: str) -> str:
    """Prefix of the pointers of a shard, with a slash at its end; no inbox is inside another one."""
    return INBOX if shard == FIRST_SHARD else f"{OTHER_INBOXES}{shard}/"


def pointer_key(manifest: str, nonce: str, *, urgent: bool, shard: str = FIRST_SHARD) -> str:
    """Key of a pointer in the inbox of a shard; ``nonce`` is random, because Spark reads each key once."""
    return f"{pointer_prefix(manifest, urgent=urgent, shard=shard)}{nonce}.json"


def pointer_prefix(manifest: str, *, urgent: bool, shard: str = FIRST_SHARD) -> str:
    """Prefix of all pointers to a manifest in an inbox. Those of urgent ones sort by the age of their manifests."""
    return f"{inbox(shard)}{URGENT if urgent else ''}{manifest}-"


def manifest_of_pointer(key: str) -> str | None:
    """Manifest id of a pointer's key, in any inbox; None for any other key."""
    return key.rpartition("/")[2].removeprefix(URGENT).rpartition("-")[0] or None


def sweep_key(listing: str) -> str:
    return f"{SWEEP}{listing}.json"


def verification_key(date: str, *, early: bool) -> str:
    """``date``: ``YYYY-MM-DD``, UTC. ``early``: verified before the night had converted everything of it."""
    return f"{VERIFICATIONS}{date}{'-early' if early else ''}.json"


def batch_key(dataset: str, number: int, nonce: str) -> str:
    """Key of the document of a batch; a random ``nonce`` keeps two processes from writing the same one."""
    return f"{BATCHES}{dataset}/{number:08d}-{nonce}.json"


def table_location(lake_bucket: str, dataset: str) -> str:
    """URI of the folder of a dataset's Iceberg table, which holds no file of a conversion."""
    return f"s3://{lake_bucket}/{TABLES}{dataset}"


def intent_key(name: str) -> str:
    """Key of an intent document; ``name`` was never used before, and begins with its time: they sort by age."""
    return f"{INTENTS}{name}.json"


def resubmission_key(name: str) -> str:
    return f"{RESUBMISSIONS}{name}.json"


def resubmitted_lines_key(name: str) -> str:
    """Key of the lines of a resubmission: the file that a manifest converts."""
    return f"{RESUBMISSIONS}{name}.ndjson"


def commit_key(manifest: str, generation: int, attempt: int, nonce: str) -> str:
    """Key of the commit document of one attempt; a random ``nonce`` keeps a late duplicate from overwriting it."""
    return f"{COMMITS}{manifest[:8]}/{manifest}-g{generation}-a{attempt}-{nonce}.json"


def exclusions_key(manifest: str, generation: int, attempt: int, nonce: str) -> str:
    """Key of the exclusions document of one attempt: files that the next attempt leaves out, because it cannot read
    them to their end."""
    return f"{EXCLUSIONS}{manifest[:8]}/{manifest}-g{generation}-a{attempt}-{nonce}.json"


def result_key(manifest: str, generation: int) -> str:
    """Key of the result document of a generation: counts of what was read and written, per file."""
    return f"{RESULTS}{manifest[:8]}/{manifest}-g{generation}.json"


def plan_summary_key(execution: str) -> str:
    return f"{PLANS}{execution}/plan.json"


def plan_index_key(execution: str, nonce: str) -> str:
    """Key of the JSON array that the distributed Map reads: one item per run. Each invocation of ``plan`` has a random
    ``nonce``, so that two for one execution do not overwrite each other's runs."""
    return f"{PLANS}{execution}/{nonce}/index.json"


def run_key(execution: str, nonce: str, number: int) -> str:
    return f"{PLANS}{execution}/{nonce}/runs/{number:05d}.json"


def denial_key(run: str) -> str:
    """Key of the document that lists what job runs were denied of the run document with the key ``run``."""
    return f"{DENIALS}{run.removeprefix(PLANS)}"


def verdict_key(execution: str) -> str:
    return f"{PLANS}{execution}/verdict.json"


REPORT_PAGE = "report.html"
REPORT_INDEX = f"{PLANS}index.html"
"""The page about the last days, next to the folders of the executions: its links lead to their reports."""


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
    # A byte of the command line, or half a pair of a document, that is no character.
    if scheme not in ("s3", "s3a") or not bucket or not key or LONE_SURROGATE.search(rest):
        raise InvalidInputError(f"{uri!r} is not a valid S3 URI: pass s3://bucket/key")
    return S3Uri(bucket, key)


def list_objects(s3: S3Client, bucket: str, prefix: str = "", after: str = "") -> Iterator[ObjectTypeDef]:
    """The objects whose keys begin with ``prefix`` and come after ``after``; one page is in memory at a time.

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
    """What the next request names: a page that is not the last one has no key where S3 has passed over many objects
    that were deleted, in a bucket with versions."""
    return {"ContinuationToken": page["NextContinuationToken"]}


ARCHIVES = ("GLACIER", "DEEP_ARCHIVE")
"""Storage classes whose objects can be read only while they are restored (Amazon S3 User Guide, "Working with archived
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
        # A key is listed before its extensions.
        if not page["IsTruncated"] or page["NextKeyMarker"] != key:
            return
        markers = {"KeyMarker": page["NextKeyMarker"], "VersionIdMarker": page["NextVersionIdMarker"]}
