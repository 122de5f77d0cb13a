"""The stack's outputs: the stack writes them, the command line reads them. Needs no CDK."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

from lake.engines import Engine
from lake.errors import InvalidInputError
from lake.resource_names import ResourceNames
from lake.shards import Shards

OPTIONAL = ("shards", "records", "stream_application", "tables")
"""Fields whose output a stack may lack."""


@dataclass(frozen=True, slots=True)
class StackOutputs:
    """What a person or the command line needs to know of one deployed stage."""

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
    """The shards of the stream lane; without an output of their own while there is only the first one."""
    records: Mapping[str, str] = field(default_factory=dict)
    """Name -> dataset of each ``[[records]]``; a stage without any has no such output."""
    stream_application: str = ""
    """Id of the EMR Serverless application of the streaming jobs; a stage with them on Glue has no such output."""
    tables: str = ""
    """Name of the function that brings files into the Iceberg tables; a stage without any has no such output."""

    @property
    def stream_engine(self) -> Engine:
        return Engine.EMR_SERVERLESS if self.stream_application else Engine.GLUE

    def to_outputs(self) -> dict[str, str]:
        """Output key -> value, one for each field of this class and of ``ResourceNames``; none for an ``OPTIONAL`` one
        that has its default.
        """
        texts = {name: getattr(self, name) for name in _NAMES} | asdict(self.resources)
        texts["shards"] = "" if self.shards == Shards() else str(self.shards.jobs)
        texts["records"] = json.dumps(self.records) if self.records else ""
        return {output_key(name): text for name, text in texts.items() if text}

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, str]) -> "StackOutputs":
        """The inverse of ``to_outputs``, for the outputs of a deployed stack.

        Raises ``InvalidInputError``: an output is missing or cannot be read: the stack was deployed from another
        version.
        """
        resources = [item.name for item in fields(ResourceNames)]
        texts = {name: outputs.get(output_key(name), "") for name in (*resources, *_NAMES)}
        for name, text in texts.items():
            if not text and name not in OPTIONAL:
                raise InvalidInputError(f"the stack has no output {output_key(name)}: deploy this version of the stack")
        try:
            shards, records = Shards(int(texts.pop("shards") or 1)), json.loads(texts.pop("records") or "{}")
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"an output of the stack cannot be read ({error}): deploy this version of the stack"
            ) from error
        names = ResourceNames(**{name: texts.pop(name) for name in resources})
        return cls(names, **texts, shards=shards, records=records)


_NAMES = tuple(item.name for item in fields(StackOutputs) if item.name != "resources")


def output_key(field: str) -> str:
    return "".join(word.title() for word in field.split("_"))
