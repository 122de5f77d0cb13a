"""Files as people name them: ``s3://bucket/key``, whatever its versions."""

from __future__ import annotations

from dataclasses import dataclass

from lake.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class Name:
    """A key of a bucket, whatever its versions."""

    bucket: str
    key: str

    @property
    def uri(self) -> str:
        """``s3://bucket/key``, for people."""
        return f"s3://{self.bucket}/{self.key}"


def parse_name(uri: object) -> Name:
    """``s3://bucket/key``; raises ``InvalidInputError``."""
    scheme, _, rest = uri.partition("://") if isinstance(uri, str) else ("", "", "")
    bucket, _, key = rest.partition("/")
    if scheme != "s3" or not bucket or not key:
        raise InvalidInputError(f"{uri!r} is no S3 URI: type s3://bucket/key")
    return Name(bucket, key)


def never_seen(uri: str) -> str:
    """For people who ask for a file that the ledger does not know."""
    return (
        f"the ledger has never seen {uri}: check the spelling; if the object is there, its event has not come (yet): "
        "a backfill over its hour finds it"
    )
