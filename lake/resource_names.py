"""Names of the resources of one deployment, as its stack passes them to Lambdas, Glue jobs and the command line."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from lake.errors import InvalidInputError
from lake.shards import FIRST_SHARD

OPTIMIZER_ROLE = "OPTIMIZER_ROLE"
"""Name of the environment variable with the ARN of the role of Glue's table optimizer."""
ARRIVALS_QUEUE = "ARRIVALS_QUEUE"
"""Name of the environment variable of ``route`` with the URL of the queue of events."""
BATCH_JOB_SUFFIX = "-batch"
"""Suffix of the batch job's name, after the stack's name."""


@dataclass(frozen=True, slots=True)
class ResourceNames:
    input_bucket: str
    lake_bucket: str
    quarantine_bucket: str
    control_bucket: str
    ledger_table: str
    stream_job: str
    """Name of the first shard's job; the names of the other jobs begin with it."""
    batch_job: str
    catalog_database: str

    @classmethod
    def read(cls, source: Mapping[str, str]) -> "ResourceNames":
        """Read ``INPUT_BUCKET``, ... of a Lambda's environment, or ``input_bucket``, ... of a Glue job's arguments.

        Raises ``InvalidInputError`` if one is missing or empty.
        """
        values = {key.lower(): value for key, value in source.items()}
        if missing := [item.name for item in fields(cls) if not values.get(item.name)]:
            raise InvalidInputError(
                f"the variable or argument {missing[0]} is missing: deploy the stack again to set it"
            )
        return cls(**{item.name: values[item.name] for item in fields(cls)})

    @property
    def stack(self) -> str:
        return self.batch_job.removesuffix(BATCH_JOB_SUFFIX)

    def stream_job_of(self, shard: str) -> str:
        return self.stream_job if shard == FIRST_SHARD else f"{self.stream_job}-{shard}"

    @property
    def tables_database(self) -> str:
        """The catalog database of the Iceberg tables; it exists if a dataset has a table."""
        return f"{self.catalog_database}_tables"

    @property
    def file_buckets(self) -> tuple[str, str]:
        """Buckets whose objects a manifest may name: the input, and the control bucket for resubmitted lines."""
        return self.input_bucket, self.control_bucket

    @property
    def output_buckets(self) -> tuple[str, str]:
        return self.lake_bucket, self.quarantine_bucket

    def to_environment(self) -> dict[str, str]:
        return {key.upper(): value for key, value in asdict(self).items()}

    def to_arguments(self) -> dict[str, str]:
        """The default arguments of a Glue job."""
        return {f"--{key}": value for key, value in asdict(self).items()}
