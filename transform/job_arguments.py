"""From a job's arguments to the services it works with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import boto3

from lake.errors import InvalidInputError
from lake.ledger import Ledger
from lake.resource_names import ResourceNames
from lake.settings import load_settings, parse_settings
from transform.clients import JOB_CLIENT_CONFIG, s3_client
from transform.context import JobServices

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mypy_boto3_s3 import S3Client

    from lake.settings import Settings


def parse_arguments(argv: Iterable[str]) -> dict[str, str]:
    """Glue's ``--KEY value`` pairs, keys without dashes; what has no value stands as an empty text."""
    arguments: dict[str, str] = {}
    name: str | None = None
    for word in argv:
        if word.startswith("--"):
            key, equals, value = word[2:].partition("=")
            arguments[key] = value
            name = None if equals else key
        elif name is not None:
            arguments[name] = word
            name = None
    return arguments


def open_services(arguments: Mapping[str, str]) -> JobServices:
    """Clients from the environment, names and settings from the arguments.

    Raises
    ------
    InvalidInputError
        An argument is missing.
    InvalidSettingsError
        The settings are wrong; names key and value.
    """
    s3 = s3_client()
    resources = ResourceNames.from_arguments(arguments)
    # A table name and an endpoint are all it needs; the client of a resource takes and gives plain Python values.
    dynamodb = boto3.Session().resource("dynamodb", config=JOB_CLIENT_CONFIG).meta.client
    return JobServices(s3, Ledger.over(dynamodb, resources.ledger_table), resources, _settings(s3, arguments))


def read_uri(s3: S3Client, uri: str) -> bytes:
    """The object at ``s3://bucket/key``."""
    parts = urlsplit(uri, allow_fragments=False)
    if parts.scheme not in ("s3", "s3a") or not parts.path.strip("/"):
        raise InvalidInputError(f"{uri!r} is no s3://bucket/key")
    return s3.get_object(Bucket=parts.netloc, Key=parts.path.removeprefix("/"))["Body"].read()


def _settings(s3: S3Client, arguments: Mapping[str, str]) -> Settings:
    uri = arguments.get("settings")
    if not uri:
        raise InvalidInputError("the job argument --settings is missing: deploy the stack again, it sets all of them")
    if uri.startswith(("s3://", "s3a://")):
        return parse_settings(json.loads(read_uri(s3, uri)))
    return load_settings(Path(uri))
