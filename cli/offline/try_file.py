"""``hybrid-router try``: what would happen to one file of this machine or of S3, without a stage."""

import os
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import boto3
import pyarrow.parquet as pq
import typer
from botocore.exceptions import ClientError

from cli.commands import ALL_CORES, Answer, BucketRegion, SettingsFile
from cli.errors import ExitCode, NotReachableError
from cli.offline.convert import parse_hour, region_of_environment
from cli.terminal import print_facts
from lake.aws_types import S3Client
from lake.errors import InvalidInputError
from lake.faults import error_code
from lake.layout import parse_s3_uri
from lake.manifest import Lane, ObjectVersion, Partition
from lake.settings import Settings, load_settings
from lake.speed import Speeds
from lake.texts import format_count, format_dollars, format_names, format_size
from offline.conversion import Conversion, GroupOutcome
from offline.input_files import SCHEME, InputFile, LocalFile
from offline.output_folder import LAKE, OutputFolder
from router.estimate.night import offers
from router.route.decide_lane import GONE_CODES, Attribute, NotRead, decide_lane, read_attribute

TRIAL_DATASET = "tried"
"""Dataset of a file that matches no rule: it is converted anyway."""
UNKNOWN = {
    Attribute.TAGS: NotRead("a local file has none, pass --tag name=value"),
    Attribute.METADATA: NotRead("a local file has none, pass --metadata name=value"),
}


def parse_attributes(tags: Sequence[str], metadata: Sequence[str]) -> dict[Attribute, dict[str, str]]:
    """Parse the options ``--tag`` and ``--metadata``; names of metadata are in lower case, as S3 keeps them."""
    attributes: dict[Attribute, dict[str, str]] = {}
    if tags:
        attributes[Attribute.TAGS] = dict(_parse_pair("--tag", item) for item in tags)
    if metadata:
        pairs = (_parse_pair("--metadata", item) for item in metadata)
        attributes[Attribute.METADATA] = {name.lower(): value for name, value in pairs}
    return attributes


def _parse_pair(option: str, item: str) -> tuple[str, str]:
    name, sign, value = item.partition("=")
    if not name or not sign:
        raise InvalidInputError(f"{option} {item!r} is not valid: pass name=value, such as priority=high")
    return name, value


def try_command(
    file: Annotated[str, typer.Argument(help="One NDJSON file, or s3://bucket/key.")],
    key: Annotated[
        str | None, typer.Option(help="Its key in the input bucket; without it the object's, or the path as given.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag of the object, as name=value; may be repeated.")] = None,
    metadata: Annotated[
        list[str] | None, typer.Option(help="Metadata of the object, as name=value; may be repeated.")
    ] = None,
    settings: SettingsFile = Path("settings/dev.toml"),
    at: Annotated[str | None, typer.Option(help="UTC hour of its arrival, such as 2026-11-21T08.")] = None,
    region: BucketRegion = None,
) -> Answer:
    """Show what would happen to a file: lane, dataset, columns, rejects, cost; exit code 1 if a line is no row."""
    now = parse_hour(at) or datetime.now(UTC)
    attributes, where = parse_attributes(tag or [], metadata or []), region or region_of_environment([file])
    chosen, is_object = load_settings(settings), file.startswith(SCHEME)
    s3: Any = boto3.client("s3", region_name=where) if is_object else None
    found = _find_object(s3, file) if is_object else _find_file(file)
    path = Path(file)
    local_key = path.name if path.is_absolute() else path.as_posix()
    key, size = key or (found.key if is_object else local_key), found.size
    arrival = ObjectVersion.of(chosen.input.bucket or "input", key, "tried", size, now, None)
    read = partial(read_attribute, s3, found) if is_object else UNKNOWN.__getitem__
    decision = decide_lane(arrival, chosen, now, lambda name: attributes[name] if name in attributes else read(name))
    partition = Partition.of(decision.dataset or TRIAL_DATASET, now)
    with tempfile.TemporaryDirectory(prefix="hybrid-router-") as folder, OutputFolder(Path(folder)) as output:
        conversion = Conversion(output, chosen.convert, ALL_CORES, lambda _: None, where)
        (outcome,) = conversion.run([[InputFile(found, partition)]])
        if failure := outcome.refused.get(found):
            raise NotReachableError(f"{file} was not converted: {failure.advice or failure.reason}")
        converted = _converted(outcome, Path(folder))
    body: dict[str, Any] = {
        "key": key,
        "lane": decision.lane,
        "reason": decision.reason,
        "dataset": decision.dataset,
        "hour": partition.stamp,
        "bytes": size,
        **converted,
        "dollars": _dollars(chosen, decision.lane, arrival),
    }
    is_fine = decision.lane is not None and not body["quarantined"] and body["unreadable"] is None
    return Answer(body, lambda: print_facts(_facts(body)), ExitCode.OK if is_fine else ExitCode.NEGATIVE)


def _find_file(name: str) -> ObjectVersion:
    # Unlike `Path.resolve`, it answers for a link to itself.
    path = Path(os.path.realpath(name))
    if not path.is_file():
        raise InvalidInputError(f"{name} is not a file: pass one NDJSON file, or s3://bucket/key")
    return LocalFile.found(str(path))


def _find_object(s3: S3Client, uri: str) -> ObjectVersion:
    name = parse_s3_uri(uri)
    try:
        head = s3.head_object(Bucket=name.bucket, Key=name.key)
    except ClientError as error:
        if error_code(error) not in GONE_CODES:
            raise
        raise InvalidInputError(f"{uri} does not exist: pass s3://bucket/key of one NDJSON file") from error
    size, changed = head["ContentLength"], head["LastModified"]
    return ObjectVersion.of(name.bucket, name.key, head["ETag"], size, changed, head.get("VersionId"))


def _converted(outcome: GroupOutcome, folder: Path) -> dict[str, Any]:
    (source,) = outcome.sources
    schemas = (pq.read_schema(folder / LAKE / item.key) for item in outcome.objects)
    return {
        "lines": source.lines,
        "rows": source.rows,
        "blankLines": source.blank_lines,
        "quarantined": source.rejects,
        "firstReject": source.first_reject,
        "unreadable": source.failed,
        "columns": list(dict.fromkeys(name for schema in schemas for name in schema.names)),
        "parquetBytes": sum(item.size for item in outcome.objects),
    }


def _dollars(settings: Settings, lane: Lane | None, file: ObjectVersion) -> dict[str, float]:
    """Return the price of converting the file on each engine of the lane, if S3 is read as fast as assumed."""
    chosen = settings
    allowed: Collection[str] = settings.batch.engines
    if lane == Lane.STREAM:
        chosen = replace(settings, batch=replace(settings.batch, worker_type=settings.stream.worker_type))
        allowed = (settings.stream.engine,)
    core_hours = Speeds({}, settings).file_seconds(file) / 3600
    return {
        str(offer.engine): core_hours / offer.vcpus * offer.dollars_per_hour
        for offer in offers(chosen)
        if offer.engine in allowed and lane is not None
    }


def _facts(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    lane = "ignored" if body["lane"] is None else f"{body['lane']} lane"
    yield "file", f"{body['key']}: {lane}: {body['reason']}"
    if body["dataset"] is not None:
        yield "partition", f"dataset {body['dataset']}, hour {body['hour']} if it arrives then"
    if body["unreadable"] is not None:
        yield "unreadable", f"{body['unreadable']}: the whole file goes to the quarantine"
    else:
        rejects = sum(body["quarantined"].values())
        rows = format_count(body["rows"], "row")
        yield "lines", f"{body['lines']:,}: {rows}, {rejects:,} quarantined, {body['blankLines']:,} blank"
        yield from (("", f"{format_count(count, 'line')}: {reason}") for reason, count in body["quarantined"].items())
        if body["firstReject"]:
            yield "", f"first: {body['firstReject']}"
        yield "columns", f"{len(body['columns']):,}: {format_names(body['columns'])}"
        yield "Parquet", f"{format_size(body['parquetBytes'])} of {format_size(body['bytes'])}"
    for engine, dollars in body["dollars"].items():
        text = "the workers while they convert it, by the prices and the assumed speed of price.*"
        yield "conversion", f"{engine} {format_dollars(dollars)}: {text}"
