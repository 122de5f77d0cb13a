"""``hybrid-router try``: what would happen to one file, without any cloud."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import typer

from cli.exit_codes import ExitCode
from lake.errors import InvalidInputError
from lake.ledger import StreamRow
from lake.manifest import ObjectVersion
from lake.partition import Partition
from lake.printable import printable
from offline.conversion import Conversion
from offline.input_files import InputFile
from offline.local_files import LocalFile
from offline.output_folder import LAKE, OutputFolder
from report.texts import format_size
from router.estimate.offer import offers
from router.route.decide_lane import decide_lane

if TYPE_CHECKING:
    from datetime import datetime

    from lake.commit import SourceCount
    from lake.settings import Settings

MEGABYTE = 1_000_000
MAX_NAMED_COLUMNS = 40
ASIDE = "tried"
"""Dataset of a file that no rule takes: it is converted all the same."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A file, and the circumstances under which it would arrive."""

    path: Path
    key: str
    """Its key in the input bucket."""
    settings: Settings
    now: datetime
    cores: int


def try_file(trial: Trial, *, as_json: bool) -> int:
    """Print lane, dataset, hour, columns, rejects and cost; the exit code: 1 if it is ignored or not all of it is rows.

    Raises
    ------
    InvalidInputError
        The file does not exist.
    """
    if not trial.path.is_file():
        raise InvalidInputError(f"{trial.path} is not a file: pass one NDJSON file")
    settings, size = trial.settings, trial.path.stat().st_size
    arrival = ObjectVersion.of(settings.input.bucket or "input", trial.key, "tried", size, trial.now, None)
    decision = decide_lane(arrival, settings, trial.now, StreamRow())
    partition = Partition.of(decision.dataset or ASIDE, trial.now)
    body: dict[str, Any] = {
        "key": trial.key,
        "lane": decision.lane,
        "reason": decision.reason,
        "dataset": decision.dataset,
        "hour": partition.stamp,
        "bytes": size,
        **_converted(trial, partition),
        "dollars": _dollars(settings, size),
    }
    if as_json:
        typer.echo(json.dumps(body, indent=2))
    else:
        _print(body)
    is_fine = decision.lane is not None and not body["quarantined"] and body["unreadable"] is None
    return ExitCode.FINE if is_fine else ExitCode.NOT_SO


def _converted(trial: Trial, partition: Partition) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="hybrid-router-") as folder, OutputFolder(Path(folder)) as output:
        path = trial.path.resolve()
        file = InputFile(LocalFile.found(path, path.stat()), partition)
        conversion = Conversion(output, trial.settings.convert, trial.cores, lambda _: None)
        (outcome,) = conversion.run([[file]])
        (source,) = outcome.sources
        columns: dict[str, None] = {}
        for item in outcome.objects:
            columns |= dict.fromkeys(pq.read_schema(Path(folder) / LAKE / item.key).names)
        return _counts(source) | {"columns": list(columns), "parquetBytes": sum(item.size for item in outcome.objects)}


def _counts(source: SourceCount) -> dict[str, Any]:
    return {
        "lines": source.lines,
        "rows": source.rows,
        "blankLines": source.blank_lines,
        "quarantined": {reason: count for reason, count in source.rejects.items() if count},
        "firstReject": source.first_reject,
        "unreadable": source.failed,
    }


def _dollars(settings: Settings, size: int) -> dict[str, float]:
    """Price of the workers while they convert so many bytes, by engine; at the assumed speed of a core."""
    speed = settings.price.mb_per_second_per_core * MEGABYTE
    return {
        str(offer.engine): size / (speed * offer.speed_factor * offer.vcpus) / 3600 * offer.dollars_per_hour
        for offer in offers(settings)
    }


def _print(body: dict[str, Any]) -> None:
    lane = "ignored" if body["lane"] is None else f"{body['lane']} lane"
    typer.echo(f"{printable(body['key'])}: {lane}: {printable(body['reason'])}")
    if body["dataset"] is not None:
        typer.echo(f"partition   dataset {body['dataset']}, hour {body['hour']} if it arrives then")
    if body["unreadable"] is not None:
        typer.echo(f"unreadable  {printable(body['unreadable'])}: the whole file goes to the quarantine")
    else:
        typer.echo(
            f"lines       {body['lines']:,}: {body['rows']:,} rows, {sum(body['quarantined'].values()):,} quarantined, "
            f"{body['blankLines']:,} blank"
        )
        for reason, count in body["quarantined"].items():
            typer.echo(f"            {count:,} lines: {reason}")
        if body["firstReject"]:
            typer.echo(f"            first: {printable(body['firstReject'])}")
        columns = list(map(printable, body["columns"]))
        shown, left = columns[:MAX_NAMED_COLUMNS], len(columns) - MAX_NAMED_COLUMNS
        more = f" and {left:,} more" if left > 0 else ""
        typer.echo(f"columns     {len(columns):,}: {', '.join(shown)}{more}")
        typer.echo(f"Parquet     {format_size(body['parquetBytes'])} of {format_size(body['bytes'])}")
    prices = ", ".join(f"{engine} ${dollars:.9f}" for engine, dollars in body["dollars"].items())
    typer.echo(f"conversion  {prices} (the workers, at price.* of the settings)")
