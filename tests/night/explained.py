"""Every file is explained: what the ledger says of it is what became of it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from io import BytesIO
from typing import Any, cast

from cli.deployed_stack import DeployedStack
from cli.inspect.explain import explain_file
from lake.documents import to_json
from lake.layout import S3Uri
from tests.night.cloud import BUCKET, Night, NightFailedError
from tests.night.files import Day, DayFile, Part

SAMPLE = 50
"""Files that are explained by the command as well."""
LANES = {
    Part.SPILLED: ("batch", "stream.latency_goal_seconds"),
    Part.URGENT: ("stream", "urgent"),
    Part.WAITING: ("batch", "waits for the overnight run"),
    Part.DENIED: ("batch", "waits for the overnight run"),
    Part.PROMOTED: ("stream", "waits for the overnight run"),
    Part.MISSED: ("batch", "found by the sweep"),
}
"""The lane that has converted the files of a part, and what the reason of their first lane has to say."""


def explain_all(night: Night, day: Day) -> Counter[str]:
    """Explain every file, and a sample of them by the command; the number of files by the lane that converted them.

    Raises ``NightFailedError``: the outcome, the counts, the lane or the reason of a file are not those of its lines.
    """
    # Each document is read once: nothing changes them any more.
    stack, now = replace(night.stack, s3=cast("Any", _RememberingS3(night.stack.s3))), datetime.now(UTC)
    wrong, lanes = [], Counter[str]()
    for file in day.files:
        version = _explained(stack, file, now)
        lanes[version["lane"] if version else "none"] += 1
        wrong += [f"{file.key}: {text}" for text in _wrong(file, version)]
    if wrong:
        raise NightFailedError("not explained by what became of it: " + "; ".join(wrong[:SAMPLE]))
    sample = day.files[:: max(len(day.files) // SAMPLE, 1)]
    for file in sample:
        night.command("explain", f"s3://{BUCKET}/{file.key}")
    return lanes


def _explained(stack: DeployedStack, file: DayFile, now: datetime) -> dict[str, Any] | None:
    """What ``explain`` says of the newest version of the file."""
    document = explain_file(stack, S3Uri(BUCKET, file.key), 3, now)
    versions: Sequence[dict[str, Any]] = to_json(document)["versions"]
    return versions[-1] if len(versions) == (2 if file.part == Part.DAMAGED else 1) else None


def _wrong(file: DayFile, version: dict[str, Any] | None) -> list[str]:
    """Why the explanation is not what became of the file."""
    if version is None:
        return ["the ledger has none or several arrivals of it"]
    source = (version["result"] or {}).get("source", {})
    lane, reason = LANES.get(file.part, (version["lane"], ""))
    counts = (source.get("rows"), sum(source.get("rejects", {}).values()))
    checks = {
        "outcome": (version["outcome"], "QUARANTINED_LINES" if file.rejected else "DONE"),
        "rows and rejected lines": (counts, (len(file.rows), len(file.rejected))),
        "lane": (version["lane"], lane),
        "reason": (reason in version["reason"], True),
    }
    return [f"its {name} is {found}, not {right}" for name, (found, right) in checks.items() if found != right]


class _RememberingS3:
    def __init__(self, s3: Any) -> None:
        self._s3 = s3
        self._body = cache(lambda *request: s3.get_object(**dict(request))["Body"].read())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._s3, name)

    def get_object(self, **request: str) -> dict[str, Any]:
        return {"Body": BytesIO(self._body(*request.items()))}
