"""Every S3 key of the system is built here, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lake.partition import Partition

MANIFESTS = "manifests/"
INBOX = "inbox/"
COMMITS = "commits/"
EXCLUSIONS = "exclusions/"
RESULTS = "results/"
PLANS = "plans/"
SWEEP = "sweep/"
CHECKPOINT = "checkpoint/stream/"


def partition_prefix(partition: Partition) -> str:
    """Hive-style folder of a partition, the same in the lake and in the quarantine."""
    return f"{partition.dataset}/date={partition.date}/hour={partition.hour:02d}/"


def lake_prefix(partition: Partition, manifest: str, generation: int) -> str:
    """What the names of all objects of one generation of one manifest begin with, in lake and quarantine."""
    return f"{partition_prefix(partition)}{manifest}-g{generation}-"


def lake_key(partition: Partition, manifest: str, generation: int, number: int) -> str:
    """Final key of a Parquet file; ``number`` is unique within the generation."""
    return f"{lake_prefix(partition, manifest, generation)}{number:05d}.parquet"


def quarantine_key(partition: Partition, manifest: str, generation: int, number: int) -> str:
    """Final key of a quarantine object (JSON lines)."""
    return f"{lake_prefix(partition, manifest, generation)}{number:05d}.jsonl"


def parse_generation(key: str) -> tuple[str, int] | None:
    """(manifest id, generation) of a lake or quarantine key; None for a key that is not ours."""
    manifest, _, rest = key.rsplit("/", 1)[-1].partition("-g")
    generation, _, tail = rest.partition("-")
    if not manifest or not tail or not generation.isdigit():
        return None
    return manifest, int(generation)


def manifest_key(manifest: str) -> str:
    """The manifest document."""
    return f"{MANIFESTS}{manifest[:8]}/{manifest}.json"


def pointer_key(manifest: str, nonce: str) -> str:
    """A pointer in the stream's inbox; every ``nonce`` gives a name never used before."""
    return f"{pointer_prefix(manifest)}{nonce}.json"


def pointer_prefix(manifest: str) -> str:
    """What the names of all pointers to a manifest begin with."""
    return f"{INBOX}{manifest}-"


def sweep_key() -> str:
    """Where the sweep's listings have got to."""
    return f"{SWEEP}progress.json"


def commit_key(manifest: str, generation: int, attempt: int, nonce: str) -> str:
    """The commit document of one attempt; the nonce keeps a zombie of the same attempt from overwriting it."""
    return f"{COMMITS}{manifest[:8]}/{manifest}-g{generation}-a{attempt}-{nonce}.json"


def exclusions_key(manifest: str, generation: int, attempt: int, nonce: str) -> str:
    """Files that this attempt could not read to their end: the next one runs without them."""
    return f"{EXCLUSIONS}{manifest[:8]}/{manifest}-g{generation}-a{attempt}-{nonce}.json"


def result_key(manifest: str, generation: int) -> str:
    """The result document of a generation: what was read and written, per file."""
    return f"{RESULTS}{manifest[:8]}/{manifest}-g{generation}.json"


def plan_index_key(execution: str) -> str:
    """The JSON array the distributed Map reads: one item per run."""
    return f"{PLANS}{execution}/index.json"


def plan_summary_key(execution: str) -> str:
    """What a plan decided, for people and for settle."""
    return f"{PLANS}{execution}/plan.json"


def run_key(execution: str, number: int) -> str:
    """The document that lists the manifests of one run."""
    return f"{PLANS}{execution}/runs/{number:05d}.json"


def verdict_key(execution: str) -> str:
    """What settle found."""
    return f"{PLANS}{execution}/verdict.json"
