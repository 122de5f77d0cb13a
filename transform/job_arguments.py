"""A job's arguments, and the services that they name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lake.documents import read_uri
from lake.errors import InvalidInputError
from lake.ledger import Ledger
from lake.resource_names import ResourceNames
from lake.settings import Settings, load_settings, parse_settings
from transform.clients import dynamodb_client, s3_client
from transform.task_model import JobServices

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def parse_arguments(argv: Iterable[str]) -> dict[str, str]:
    """Glue's ``--KEY value`` and ``--KEY=value`` arguments: keys without dashes, "" for a key without a value.

    A word that begins with two dashes is a key, any other word after a key is its value. Unknown keys are kept, because
    Glue adds its own; the last of equal keys wins. Why not argparse: docs/adr/tools.md.
    """
    arguments: dict[str, str] = {}
    awaiting_value: str | None = None
    for word in argv:
        if word.startswith("--"):
            key, equals, value = word[2:].partition("=")
            arguments[key] = value
            awaiting_value = None if equals else key
        elif awaiting_value is not None:
            arguments[awaiting_value] = word
            awaiting_value = None
    return arguments


def open_services(arguments: Mapping[str, str]) -> JobServices:
    """Clients of the region, names and settings: all from the arguments.

    Raises ``InvalidInputError``: an argument is missing, or ``--settings`` is not a valid S3 URI;
    ``InvalidSettingsError``: a setting is wrong; the error names its key and value.
    """
    resources = ResourceNames.from_arguments(arguments)
    region = _required(arguments, "region")
    s3 = s3_client(region)
    ledger = Ledger.over(dynamodb_client(region), resources.ledger_table)
    return JobServices(s3, ledger, resources, _settings(s3, arguments), region)


def _settings(s3: S3Client, arguments: Mapping[str, str]) -> Settings:
    uri = _required(arguments, "settings")
    if uri.startswith(("s3://", "s3a://")):
        return parse_settings(json.loads(read_uri(s3, uri)))
    return load_settings(Path(uri))


def _required(arguments: Mapping[str, str], name: str) -> str:
    if value := arguments.get(name):
        return value
    raise InvalidInputError(f"the job argument --{name} is missing: deploy the stack again, it sets all arguments")
