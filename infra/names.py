"""Names that the stack gives its resources itself, and which code it was deployed from. Needs no CDK.

Others need these names before the resources exist: both jobs get each other's name as an argument, and the roles are
limited to resources of exactly these names. Names that CloudFormation makes up (buckets, table, functions) are known
after a deployment: ``infra.outputs`` has them.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from lake.resource_names import BATCH_JOB_SUFFIX
from lake.settings import Settings


def stack_name(stage: str) -> str:
    """The name of a stage's CloudFormation stack: letters, digits and hyphens, as CloudFormation requires.

    The settings allow only lower case letters, digits and underscores in ``stage``, so two stages never share a name.
    """
    return f"hybrid-router-{stage.replace('_', '-')}"


@dataclass(frozen=True, slots=True)
class StackNames:
    """Fixed names of one stage; several stages can share an account and region."""

    stack: str
    """Also the namespace of the functions' and the jobs' own metrics; stages of one account do not share it."""
    stream_job: str
    batch_job: str
    overnight_machine: str
    backfill_machine: str
    stream_window_machine: str
    verify_machine: str
    catalog_database: str
    """With underscores: Athena would ask for quotes around a name with hyphens."""

    @classmethod
    def of(cls, settings: Settings) -> "StackNames":
        stack = stack_name(settings.stage)
        return cls(
            stack=stack,
            stream_job=f"{stack}-stream",
            batch_job=f"{stack}{BATCH_JOB_SUFFIX}",
            overnight_machine=f"{stack}-overnight",
            backfill_machine=f"{stack}-backfill",
            stream_window_machine=f"{stack}-stream-window",
            verify_machine=f"{stack}-verify",
            catalog_database=stack.replace("-", "_"),
        )

    def delivery_stream(self, name: str) -> str:
        return f"{self.stack}-{name}"


PACKAGES = ("batch_job", "infra", "lake", "report", "router", "statemachines", "streaming_job", "transform", "verify")
"""What a deployment reads of a checkout; the libraries of the jobs are checked on their own."""
HASHED_SUFFIXES = frozenset({".css", ".js", ".json", ".py", ".toml"})
CODE_MARK = "code "
"""Precedes the fingerprint at the end of the stack's description."""
_DIGITS = 12


def code_version(checkout: Path) -> str:
    """The first 12 hexadecimal digits of the SHA-256 over names and contents of the deployed code."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        for file in sorted((checkout / package).rglob("*")):
            if file.suffix in HASHED_SUFFIXES and file.is_file():
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                digest.update(f"{file.relative_to(checkout).as_posix()} {content}\n".encode())
    return digest.hexdigest()[:_DIGITS]


def version_of(description: str) -> str | None:
    """The fingerprint in a stack's description; None: it was deployed by a version that wrote none."""
    _, mark, version = description.rpartition(CODE_MARK)
    return version if mark else None
