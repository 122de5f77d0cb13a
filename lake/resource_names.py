"""The names of one deployment's resources, as its stack hands them to Lambdas, Glue jobs and the command line."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from lake.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ResourceNames:
    """Buckets, the ledger's table and the streaming job; the same fields everywhere."""

    input_bucket: str
    lake_bucket: str
    quarantine_bucket: str
    control_bucket: str
    ledger_table: str
    stream_job: str
    batch_job: str
    catalog_database: str

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> ResourceNames:
        """Read ``INPUT_BUCKET``, ``LAKE_BUCKET``, ... of a Lambda's environment."""
        return cls._read({key.lower(): value for key, value in environment.items()}, "environment variable", str.upper)

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, str]) -> ResourceNames:
        """Read ``--input_bucket``, ... of a Glue job's arguments (keys without dashes)."""
        return cls._read(arguments, "job argument", "--{}".format)

    @classmethod
    def _read(cls, source: Mapping[str, str], kind: str, spell: object) -> ResourceNames:
        missing = [item.name for item in fields(cls) if not source.get(item.name)]
        if missing:
            name = spell(missing[0])  # type: ignore[operator]
            raise InvalidInputError(f"the {kind} {name} is missing: deploy the stack again, it sets all of them")
        return cls(**{item.name: source[item.name] for item in fields(cls)})

    @property
    def output_buckets(self) -> tuple[str, str]:
        """Where conversions write: lake and quarantine."""
        return self.lake_bucket, self.quarantine_bucket

    def to_environment(self) -> dict[str, str]:
        """What ``from_environment`` reads."""
        return {key.upper(): value for key, value in asdict(self).items()}

    def to_arguments(self) -> dict[str, str]:
        """What ``from_arguments`` reads, as Glue default arguments."""
        return {f"--{key}": value for key, value in asdict(self).items()}
