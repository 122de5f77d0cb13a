"""What ``doctor --canary`` passes to a job run, and what the run reports."""

from dataclasses import dataclass

from lake.layout import canary_key
from lake.manifest import ObjectVersion

CANARY_ARGUMENT = "canary"
"""Name of the argument with which a job only tries what a conversion needs."""
BODY = b'{"canary": 1}\n'
"""Content of every object that a canary writes."""


@dataclass(frozen=True, slots=True)
class CanaryRequest:
    name: str
    """Name of the canary, whose jobs share the objects of the input bucket."""
    job: str
    etag: str = ""
    """ETag of the object that the run reads; empty if there is none."""
    version: str = ""
    """Version of that object; empty if the bucket keeps no versions."""
    deleted: str = ""
    """Version id of a second object, which was deleted."""

    @property
    def run(self) -> str:
        return f"{self.name}/{self.job}"

    def to_text(self) -> str:
        return ",".join((self.name, self.job, self.etag, self.version, self.deleted))

    @classmethod
    def from_text(cls, text: str) -> "CanaryRequest":
        return cls(*text.split(","))

    def file(self, bucket: str, *, deleted: bool = False) -> ObjectVersion:
        name, version = ("deleted", self.deleted) if deleted else ("object", self.version)
        return ObjectVersion(bucket, canary_key(f"{self.name}/{name}"), self.etag, len(BODY), "", version or None)


@dataclass(frozen=True, slots=True)
class CheckResult:
    check: str
    problem: str | None = None
    """What is wrong and what to do; None if the check succeeded."""
