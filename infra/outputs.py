"""The stack's outputs, and what they mean: also read without CDK, by the command line and the local cloud."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from lake.errors import InvalidInputError
from lake.resource_names import ResourceNames

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class StackOutputs:
    """Names of one deployed stage."""

    resources: ResourceNames
    overnight: str
    """ARN of the state machine."""
    backfill: str
    stream_window: str
    overnight_schedule: str
    """Name of the EventBridge schedule."""
    stream_control: str
    """Name of the function that starts, watches and stops the streaming job."""
    promote: str
    """Name of the function that moves queued files to the stream lane."""
    alarm_topic: str
    """ARN of the SNS topic that alarms and failed nights go to."""
    arrivals_queue: str
    """URL of the queue between the input bucket and ``route``."""
    dead_letters: str
    """URL of the dead-letter queue."""

    def to_outputs(self) -> dict[str, str]:
        """Stack outputs: ``lake_bucket`` is the output ``LakeBucket``."""
        own = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "resources"}
        resources = {item.name: getattr(self.resources, item.name) for item in fields(ResourceNames)}
        return {output_key(name): value for name, value in {**resources, **own}.items()}

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, str]) -> StackOutputs:
        """What ``to_outputs`` wrote, as ``describe_stacks`` gives it back."""

        def read(name: str) -> str:
            if output_key(name) not in outputs:
                raise InvalidInputError(f"the stack has no output {output_key(name)}: deploy this version of it")
            return outputs[output_key(name)]

        resources = ResourceNames(**{item.name: read(item.name) for item in fields(ResourceNames)})
        return cls(resources, **{item.name: read(item.name) for item in fields(cls) if item.name != "resources"})


def output_key(field: str) -> str:
    """``lake_bucket`` -> ``LakeBucket``."""
    return "".join(word.title() for word in field.split("_"))
