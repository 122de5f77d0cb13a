"""The name of a stage's stack, its outputs, and the fingerprint of its code. Needs no CDK.

Names that CloudFormation generates (buckets, table, functions) are known after a deployment: the stack writes them as
outputs, which the command line reads.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from lake.engines import Engine
from lake.errors import InvalidInputError
from lake.resource_names import ResourceNames
from lake.shards import Shards


def stack_name(stage: str) -> str:
    """Return the name of a stage's CloudFormation stack: letters, digits and hyphens, as CloudFormation requires.

    The settings allow only lower case letters, digits and underscores in ``stage``, so two stages never share a name.
    """
    return f"hybrid-router-{stage.replace('_', '-')}"


def delivery_stream(stack: str, record: str) -> str:
    """Name of the delivery stream of a ``[[records]]``."""
    return f"{stack}-{record}"


PACKAGES = ("batch_job", "infra", "lake", "report", "router", "statemachines", "streaming_job", "transform", "verify")
"""Packages that a deployment reads from a checkout; the libraries of the jobs are checked separately."""
HASHED_SUFFIXES = frozenset({".css", ".js", ".json", ".py", ".toml"})
CODE_MARK = "code "
"""Precedes the fingerprint at the end of the stack's description."""
_DIGITS = 12


def code_version(checkout: Path) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 over names and contents of the deployed code."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        for file in sorted((checkout / package).rglob("*")):
            if file.suffix in HASHED_SUFFIXES and file.is_file():
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                digest.update(f"{file.relative_to(checkout).as_posix()} {content}\n".encode())
    return digest.hexdigest()[:_DIGITS]


def version_of(description: str) -> str | None:
    """Return the fingerprint in a stack's description; None if it has none."""
    _, mark, version = description.rpartition(CODE_MARK)
    return version if mark else None


OPTIONAL = ("shards", "records", "stream_application", "tables")
"""Fields whose output a stack may lack."""


@dataclass(frozen=True, slots=True)
class StackOutputs:
    """What a person or the command line needs to know about one deployed stage."""

    resources: ResourceNames
    overnight: str
    backfill: str
    stream_window: str
    """ARNs of the state machines."""
    overnight_schedule: str
    """Name of the EventBridge schedule."""
    stream_control: str
    plan: str
    backfill_function: str
    promote: str
    reprocess: str
    resubmit: str
    sweep: str
    """Names of the functions that the command line invokes: ``plan`` for dry runs, ``backfill`` to validate only."""
    alarm_topic: str
    """ARN of the SNS topic for alarms and failed executions."""
    arrivals_queue: str
    """URL of the queue between the input bucket and ``route``."""
    dead_letters: str
    """URL of the dead-letter queue."""
    shards: Shards = field(default_factory=Shards)
    """The shards of the stream lane; there is no such output while there is only the first shard."""
    records: Mapping[str, str] = field(default_factory=dict)
    """Name -> dataset of each ``[[records]]``; a stage without any has no such output."""
    stream_application: str = ""
    """Id of the EMR Serverless application of the streaming jobs; a stage that runs them on Glue has no such output."""
    tables: str = ""
    """Name of the function that brings files into the Iceberg tables; a stage without any has no such output."""

    @property
    def stream_engine(self) -> Engine:
        return Engine.EMR_SERVERLESS if self.stream_application else Engine.GLUE

    def to_outputs(self) -> dict[str, str]:
        """Return output key -> value for each field of this class and of ``ResourceNames``, without ``OPTIONAL`` fields
        that have their default.
        """
        texts = {name: getattr(self, name) for name in _NAMES} | asdict(self.resources)
        texts["shards"] = "" if self.shards == Shards() else str(self.shards.jobs)
        texts["records"] = json.dumps(self.records) if self.records else ""
        return {camel_case(name): text for name, text in texts.items() if text}

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, str]) -> "StackOutputs":
        """The inverse of ``to_outputs``, for the outputs of a deployed stack.

        Raises ``InvalidInputError`` if an output is missing: the stack was deployed from another version.
        """
        resources = [item.name for item in fields(ResourceNames)]
        texts = {name: outputs.get(camel_case(name), "") for name in (*resources, *_NAMES)}
        for name, text in texts.items():
            if not text and name not in OPTIONAL:
                raise InvalidInputError(f"the stack has no output {camel_case(name)}: deploy this version of the stack")
        shards, records = Shards(int(texts.pop("shards") or 1)), json.loads(texts.pop("records") or "{}")
        names = ResourceNames(**{name: texts.pop(name) for name in resources})
        return cls(names, **texts, shards=shards, records=records)


_NAMES = tuple(item.name for item in fields(StackOutputs) if item.name != "resources")


def camel_case(name: str) -> str:
    return name.title().replace("_", "")
