"""The picture of ``status``: `.venv/bin/python -m tests.unit.cli.status_picture` draws it anew from a made-up morning.

The command itself reads the morning from the emulated services and prints it.
"""

from __future__ import annotations

import io
import json
import os
import re
from contextlib import redirect_stdout
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from cli.inspect.night_schedule import read_schedule
from cli.inspect.status import status_document
from cli.inspect.status_output import print_status_document
from lake.layout import plan_summary_key
from lake.manifest import Lane, Manifest, ObjectVersion, new_manifest_id
from lake.manifest_document import write_manifest
from lake.partition import Partition
from tests.unit.cli.stack_world import NIGHT, FakeServices, execution, put_summary, stack_of
from tests.unit.lake.world import World, new_world

PICTURE = Path(__file__).parents[3] / "docs" / "images" / "status.svg"
COLUMNS = 100
GIGABYTE = 10**9
SVG_FORMAT = re.sub(r"@font-face \{\{.*?\}\}\n|<!--.*?-->", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
"""Without addresses of other servers: the picture is drawn with the fonts of the reader's machine."""


def status_text() -> str:
    """What the command prints on a morning with a backlog in both lanes, a failed manifest and an open alarm."""
    with new_world() as world:
        _queue(world, Lane.BATCH, "orders", (3, 4, 4), 41)
        _queue(world, Lane.BATCH, "events", (6, 5), 12)
        world.wait(timedelta(minutes=78))
        failed = world.queued("damaged")
        world.ledger.manifests.fail(failed, "the archive is damaged", world.now)
        world.wait(timedelta(minutes=1))
        _queue(world, Lane.STREAM, "clicks", (1, 2), 9)
        world.wait(timedelta(seconds=40))
        world.ledger.stream.open_window("2026-11-20T19:15:00.000+00:00")
        world.ledger.stream.record_heartbeat("jr_4be1c09d", world.now - timedelta(seconds=4))
        world.ledger.executions.record("night", "plan", {"runs": 8})
        verdict = {"outcome": "SUCCEEDED_WITH_QUARANTINE", "rows": 12_480_113, "rejects": 212, "failed_files": 1}
        world.ledger.executions.record("night", "verdict", verdict)
        planned = {"files": 147, "bytes": 22 * GIGABYTE, "manifests": 5}
        summary = put_summary(world, "plan-ahead", dollars=14.2) | planned
        world.raw_s3.put_object(Bucket="control", Key=plan_summary_key("plan-ahead"), Body=json.dumps(summary).encode())
        alarm = {
            "AlarmName": "hybrid-router-dev-QuarantinedShare",
            "StateUpdatedTimestamp": NIGHT + timedelta(minutes=72),
            "StateValue": "ALARM",
            "AlarmActions": ["alarm_topic"],
            "AlarmDescription": "A large share of a dataset is in the quarantine: see docs/runbook.md#quarantinedshare",
        }
        services = FakeServices(
            [execution("night")], stream_runs=[{"Id": "jr_4be1c09d", "JobRunState": "RUNNING"}], alarms=[alarm]
        )
        stack, printed = stack_of(world, services), Terminal()
        schedule = read_schedule(stack)
        with redirect_stdout(printed), patch.dict(os.environ, COLUMNS=str(COLUMNS)):
            document = status_document(stack, schedule, 20_000, world.now)
            print_status_document(document, schedule.zone, world.now, stack.options)
    return printed.getvalue()


class Terminal(io.StringIO):
    """What is printed to a terminal."""

    def isatty(self) -> bool:
        """As terminals answer."""
        return True


def picture() -> str:
    """The text in a terminal of ``COLUMNS`` columns, as SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), highlight=False)
    console.print(Text("$ hybrid-router status\n", "bold green") + Text.from_ansi(status_text().rstrip()))
    return console.export_svg(title="hybrid-router status", code_format=SVG_FORMAT, unique_id="status")


def _queue(world: World, lane: Lane, dataset: str, sizes: tuple[int, ...], files: int) -> None:
    """A manifest for each of the ``sizes``, with ``files`` files of so many gigabytes in total."""
    for number, size in enumerate(sizes):
        keys = [f"{dataset}/{number}-{file}.ndjson" for file in range(files)]
        found = [
            ObjectVersion("input", key, "0" * 32, size * GIGABYTE // files, world.now.isoformat(), "v1") for key in keys
        ]
        partition = Partition(dataset, "2026-11-20", 9)
        manifest = Manifest(new_manifest_id(world.now), lane, partition, world.now.isoformat(), tuple(found))
        write_manifest(world.raw_s3, world.resources.control_bucket, manifest)
        world.ledger.manifests.enqueue(manifest)


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
