"""Manifests that a job run of an execution was not allowed to convert: no further job run of this execution tries them.

A hint beside the ledger. Without it they are tried again, and are refused again; the next execution has its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lake.documents import encode_document, find_document, put_document
from lake.layout import denial_key
from lake.s3_uri import parse_s3_uri

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


BLOCKED_RUN = re.compile(r"run \S+ does not begin: (.*); the manifests wait, none has used up an attempt")


def format_blocked_run(run: str, fault: str) -> str:
    """What a job run reports that the environment does not let work."""
    return f"run {run} does not begin: {fault}; the manifests wait, none has used up an attempt"


def fault_of_blocked_run(text: str) -> str | None:
    """The fault that ``format_blocked_run`` has put into the text of a failed job run; None: it failed otherwise."""
    found = BLOCKED_RUN.search(text)
    return found[1] if found else None


def read_denied(s3: S3Client, control_bucket: str, run: str) -> frozenset[str]:
    """Ids of the manifests that the job runs of the run document at this URI were denied. Raises botocore's errors."""
    found = find_document(s3, control_bucket, _key(run))
    return frozenset(map(str, found["manifests"])) if found is not None else frozenset()


def write_denied(s3: S3Client, control_bucket: str, run: str, manifests: Iterable[str]) -> None:
    """Replace the list: the job runs of a run document follow one another. Raises botocore's errors."""
    put_document(s3, control_bucket, _key(run), encode_document({"manifests": sorted(manifests)}))


def _key(run: str) -> str:
    return denial_key(parse_s3_uri(run).key)
