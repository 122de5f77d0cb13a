"""The function ``route`` in the process of the tests, on a deployed stack: a test sets its clock."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lake.settings import PeakSettings
from router.services import Services
from tests.e2e.stack_settings import e2e_settings
from tests.unit.router.events import raw_message

if TYPE_CHECKING:
    from lake.manifest import ObjectVersion
    from tests.e2e.scenario import Scenario


def s3_event(file: ObjectVersion) -> dict[str, Any]:
    """The event that ``route`` gets for a put: an SQS batch with one S3 event."""
    record = {
        "eventSource": "aws:s3",
        "eventName": "ObjectCreated:Put",
        "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "s3": {
            "bucket": {"name": file.bucket},
            "object": {"key": file.key, "size": file.size, "eTag": file.etag, "versionId": file.version_id},
        },
    }
    return {"Records": [raw_message("1", json.dumps({"Records": [record]}))]}


def peak_services(scenario: Scenario, now: datetime) -> Services:
    """The services of ``route`` with peak hours, and with ``now`` as the current time."""
    settings = replace(e2e_settings(), peak=PeakSettings(hours=("08:00-20:00",), days=("mon",)))
    deployment = scenario.deployment
    return Services(
        settings=settings,
        resources=deployment.resources,
        ledger=deployment.ledger,
        s3=deployment.s3,
        glue=deployment.glue,
        clock=lambda: now,
    )
