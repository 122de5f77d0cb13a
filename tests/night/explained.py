"""Every file is explained: what the ledger says of it is what became of it, and a person is told within a second."""

from __future__ import annotations

import resource
import statistics
import time
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

from cli.inspect.explain import explain_file
from lake.json_document import to_json
from lake.s3_uri import S3Uri
from tests.night.cloud import BUCKET, NightFailedError
from tests.night.files import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cli.deployed_stack import DeployedStack
    from tests.night.cloud import Night
    from tests.night.files import Day, DayFile

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


@dataclass(frozen=True, slots=True)
class Explained:
    """How the files were explained."""

    lanes: Counter[str]
    """Files by the lane that has converted them."""
    command: tuple[float, float]
    """Seconds that the command takes from its start to its end: median and maximum of the sample."""
    processor: tuple[float, float]
    """Of these, seconds of processor time: how long it takes on a machine that does nothing else."""
    reading: tuple[float, float]
    """Seconds that it takes once Python has started."""


def explain_all(night: Night, day: Day) -> Explained:
    """Explain every file, and a sample of them by the command.

    Raises
    ------
    NightFailedError
        The outcome, the counts, the lane or the reason of a file are not those of its lines.
    """
    stack, now = _remembering(night.stack), datetime.now(UTC)
    wrong, lanes = [], Counter[str]()
    for file in day.files:
        version = _explained(stack, file, now)
        lanes[version["lane"] if version else "none"] += 1
        wrong += [f"{file.key}: {text}" for text in _wrong(file, version)]
    if wrong:
        raise NightFailedError("not explained by what became of it: " + "; ".join(wrong[:SAMPLE]))
    sample = day.files[:: max(len(day.files) // SAMPLE, 1)]
    commands = [partial(night.command, "explain", f"s3://{BUCKET}/{file.key}") for file in sample]
    command, processor = zip(*map(_seconds, commands), strict=True)
    reading, _ = zip(*(_seconds(partial(_explained, night.stack, file, now)) for file in sample), strict=True)
    return Explained(lanes, *map(_median_and_max, (command, processor, reading)))


def _explained(stack: DeployedStack, file: DayFile, now: datetime) -> dict[str, Any] | None:
    """What ``explain`` says of the newest version of the file."""
    document = explain_file(stack, S3Uri(BUCKET, file.key), 1, now)
    versions: Sequence[dict[str, Any]] = to_json(document)["versions"] if document else ()
    return versions[-1] if len(versions) == (2 if file.part == Part.DAMAGED else 1) else None


def _wrong(file: DayFile, version: dict[str, Any] | None) -> list[str]:
    """Why the explanation is not what became of the file."""
    if version is None:
        return ["the ledger has none or several arrivals of it"]
    result = version["result"] or {}
    lane, reason = LANES.get(file.part, (version["lane"], ""))
    counts = (result.get("rows"), sum(result.get("rejects", {}).values()))
    checks = {
        "outcome": (version["outcome"], "QUARANTINED_LINES" if file.rejected else "DONE"),
        "rows and rejected lines": (counts, (len(file.rows), len(file.rejected))),
        "lane": (version["lane"], lane),
        "reason": (reason in version["reason"], True),
    }
    return [f"its {name} is {found}, not {right}" for name, (found, right) in checks.items() if found != right]


def _seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds that the work takes, and processor seconds of the processes that it starts."""
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - started, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _median_and_max(seconds: Sequence[float]) -> tuple[float, float]:
    return statistics.median(seconds), max(seconds)


def _remembering(stack: DeployedStack) -> DeployedStack:
    """The stack with an S3 client that reads each document once: nothing changes them any more."""
    return replace(stack, s3=cast("Any", _RememberingS3(stack.s3)))


class _RememberingS3:
    def __init__(self, s3: Any) -> None:
        self._s3 = s3
        self._body = cache(lambda *request: s3.get_object(**dict(request))["Body"].read())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._s3, name)

    def get_object(self, **request: str) -> dict[str, Any]:
        return {"Body": BytesIO(self._body(*request.items()))}
