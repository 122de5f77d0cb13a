"""S3 URIs: a bucket and a key, without a version."""

from __future__ import annotations

from dataclasses import dataclass

from lake.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class S3Uri:
    """All versions of one key of a bucket."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


def parse_s3_uri(uri: object) -> S3Uri:
    """Read ``s3://bucket/key``, or ``s3a://bucket/key`` as Spark writes it; raises ``InvalidInputError``."""
    scheme, _, rest = uri.partition("://") if isinstance(uri, str) else ("", "", "")
    bucket, _, key = rest.partition("/")
    if scheme not in ("s3", "s3a") or not bucket or not key:
        raise InvalidInputError(f"{uri!r} is not a valid S3 URI: pass s3://bucket/key")
    return S3Uri(bucket, key)
