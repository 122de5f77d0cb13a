"""Input fields that several functions share, above all a selection: a dataset, a range of UTC hours, both or none.

From a selection to the manifests that it is about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, TypeVar

from lake.dataset_rules import named_datasets
from lake.errors import InvalidInputError, UnknownDatasetError, UnusableDocumentError
from lake.layout import MANIFESTS, S3Uri, manifest_day_prefix, manifest_of_key, parse_s3_uri
from lake.ledger import ManifestRow, State
from lake.manifest import Lane, Manifest, ObjectVersion, Partition, is_manifest_id
from lake.manifest_documents import read_manifest
from lake.settings.declaration import DATASET_NAME
from lake.settings.routing import FOLDER
from lake.texts import format_count
from router.collect.divide import divide_selected, draft_selected
from router.listing.folders import folders_of
from router.requests.report import Report, ReprocessReport
from router.services import Services

T = TypeVar("T")

DAY_PATTERN = re.compile(r"\d{4}-\d{2}-\d{2}")
HOUR_PATTERN = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}")
MAX_NAMED = 1_000
"""Maximum number of manifests or files per invocation: each costs a few reads and a write or a transaction."""
EXPECTED_TIME = "pass a UTC day such as 2026-11-21, or a UTC hour such as 2026-11-21T08"


@dataclass(frozen=True, slots=True)
class Selection:
    """Partitions of one dataset or of all, within a range of UTC hours."""

    dataset: str | None = None
    """None: all datasets."""
    first: str | None = None
    """``YYYY-MM-DDTHH``, inclusive; None: no lower bound."""
    last: str | None = None
    """``YYYY-MM-DDTHH``, inclusive; None: no upper bound."""

    def selects(self, partition: Partition) -> bool:
        return self.dataset in (None, partition.dataset) and self.selects_hour(partition.stamp)

    def selects_hour(self, hour: str) -> bool:
        """Whether the hour, ``YYYY-MM-DDTHH``, is within the range."""
        return (self.first is None or self.first <= hour) and (self.last is None or hour <= self.last)


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about: one of the three is given."""

    manifests: tuple[str, ...] = ()
    files: tuple[S3Uri, ...] = ()
    selection: Selection | None = None


def open_rows(services: Services, lane: Lane, state: State, selection: Selection) -> Iterable[ManifestRow]:
    """Open manifests of the selection, oldest first, from the index: a hint that a consistent read has to confirm."""
    return (row for row in services.ledger.manifests.open(lane, state) if selection.selects(row.partition))


def check_fields(given: Mapping[str, Any], known: Collection[str], function: str) -> None:
    """Raise ``InvalidInputError`` for fields that ``function`` does not know."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise InvalidInputError(f"{function} does not know the input field {names}: pass only {', '.join(known)}")


def parse_fields(given: object, known: Collection[str], function: str, example: str) -> Mapping[str, Any]:
    """``given``, if it is an object of known fields; raises ``InvalidInputError`` with the example otherwise."""
    if not isinstance(given, dict):
        raise InvalidInputError(f"{function} needs an object as its input: pass {example}")
    check_fields(given, known, function)
    return given


def parse_flag(given: Mapping[str, Any], name: str) -> bool:
    """A field that is true or false; false when it is missing. Raises ``InvalidInputError``."""
    value = given.get(name, False)
    if not isinstance(value, bool):
        raise InvalidInputError(f"{name} = {value!r} is neither true nor false: pass {name}: true, without quotes")
    return value


def parse_selection(given: Mapping[str, Any], services: Services) -> Selection:
    """Read ``dataset``, ``from`` and ``to``; a missing or null field does not restrict the selection.

    A day means all of its 24 hours; ``to`` is inclusive. Raises ``UnknownDatasetError``: there is no such dataset; says
    which there are; ``InvalidInputError``: invalid time, or ``from`` later than ``to``; says what to pass.
    """
    dataset = given.get("dataset")
    if dataset is not None:
        check_dataset(dataset, services)
    first, last = parse_hours(given)
    return Selection(dataset, first, last)


def parse_target(
    given: Mapping[str, Any], services: Services, lists: Collection[str], function: str, example: str
) -> Target:
    """Read what a request is about; ``lists`` are the fields of ``manifests`` and ``files`` that ``function`` takes.

    Raises ``InvalidInputError``: not exactly one kind of target, a list that is not valid or too long, or what
    ``parse_selection`` raises.
    """
    kinds = [name for name in lists if given.get(name) is not None]
    if any(given.get(name) is not None for name in ("dataset", "from", "to")):
        kinds.append("a dataset or hours")
    if len(kinds) != 1:
        problem = " and ".join(kinds) if kinds else f"neither {' nor '.join(lists)} nor a dataset or hours"
        raise InvalidInputError(f"{function} was given {problem}: pass {example}")
    if kinds == ["manifests"]:
        return Target(manifests=_parse_list(given, "manifests", _parse_manifest_id, function, example))
    if kinds == ["files"]:
        return Target(files=_parse_list(given, "files", parse_s3_uri, function, example))
    return Target(selection=parse_selection(given, services))


def _parse_list(
    given: Mapping[str, Any], name: str, parse: Callable[[object], T], function: str, example: str
) -> tuple[T, ...]:
    values = given[name]
    if not isinstance(values, list) or not values:
        raise InvalidInputError(f"{name} = {values!r} is not a valid list: pass {example}")
    if len(values) > MAX_NAMED:
        raise InvalidInputError(
            f"{name} has {len(values):,} entries, one {function} takes {MAX_NAMED:,}: pass fewer, or a dataset and "
            "its hours"
        )
    return tuple(dict.fromkeys(map(parse, values)))


def _parse_manifest_id(given: object) -> str:
    if not isinstance(given, str) or not is_manifest_id(given):
        raise InvalidInputError(f"{given!r} is not a valid manifest id: pass one as explain and the verdicts name it")
    return given


def parse_hours(given: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Read ``from`` and ``to`` as ``YYYY-MM-DDTHH``, both inclusive; None: no bound. A day means all of its 24 hours.

    Raises ``InvalidInputError``: invalid time, or ``from`` later than ``to``; says what to pass.
    """
    first, last = _parse_hour(given, "from", "00"), _parse_hour(given, "to", "23")
    if first is not None and last is not None and first > last:
        raise InvalidInputError(
            f"from = {given['from']!r} is later than to = {given['to']!r}: pass the earlier time as from"
        )
    return first, last


def check_dataset(dataset: object, services: Services) -> None:
    """Raise ``UnknownDatasetError`` for one that is unknown to the settings, the ledger and the input bucket."""
    rules = services.settings.datasets
    if isinstance(dataset, str) and DATASET_NAME.fullmatch(dataset):
        if any(rule.name == dataset for rule in rules) or services.ledger.datasets.is_known(dataset):
            return
        by_folder = [rule for rule in rules if rule.name == FOLDER]
        for folder in folders_of(services, dataset):
            if any(_has_objects(services, rule.prefix_of(folder)) for rule in by_folder):
                return
    if not isinstance(dataset, str):
        raise InvalidInputError(f'dataset = {dataset!r} is not a valid name: pass a text such as "orders"')
    known = sorted(named_datasets(rules) | set(services.ledger.datasets.names()))
    raise UnknownDatasetError(
        f"dataset = {dataset!r} is unknown: pass one of {', '.join(known)}"
        if known
        else f"dataset = {dataset!r} is unknown: no file of any dataset has arrived yet, put one into "
        f"s3://{services.resources.input_bucket} first"
    )


def check_kept(first: str, services: Services) -> None:
    """Raise ``InvalidInputError`` if arrival rows of the hour ``first`` may have expired (``ledger.keep_days``)."""
    oldest = services.settings.ledger.oldest_arrival(services.clock())
    if oldest is None:
        return
    first_kept = (oldest + timedelta(hours=1)).strftime("%Y-%m-%dT%H")
    if first < first_kept:
        raise InvalidInputError(
            f"from = {first} is older than ledger.keep_days = {services.settings.ledger.keep_days} allows: the rows "
            "that say which of its files were converted may have been deleted, so a file could be converted twice, or "
            f"called missing; pass from = {first_kept} or a later hour"
        )


def _has_objects(services: Services, prefix: str) -> bool:
    answer = services.s3.list_objects_v2(Bucket=services.resources.input_bucket, Prefix=prefix, MaxKeys=1)
    return answer["KeyCount"] > 0


def _parse_hour(given: Mapping[str, Any], name: str, hour_of_day: str) -> str | None:
    text = given.get(name)
    if text is None:
        return None
    if isinstance(text, str):
        stamp = f"{text}T{hour_of_day}" if DAY_PATTERN.fullmatch(text) else text
        if HOUR_PATTERN.fullmatch(stamp):
            try:
                datetime.strptime(stamp, "%Y-%m-%dT%H")
            except ValueError:
                pass
            else:
                return stamp
    raise InvalidInputError(f"{name} = {text!r} is not a valid time: {EXPECTED_TIME}")


MAX_QUEUED_FILES = 10_000
"""Maximum number of files of the batch lane per promoted selection: each may need a stream manifest of its own."""


def format_unknown_file(uri: S3Uri) -> str:
    return (
        f"the ledger has never seen {uri}: check the spelling; if the object exists, its event has not arrived yet: "
        "a backfill of its hour finds it"
    )


def find_files(
    services: Services, pool: ThreadPoolExecutor, uris: Sequence[S3Uri], report: Report
) -> dict[str, set[ObjectVersion]]:
    """Every version of the keys that the ledger knows, by the manifest that its arrival row names."""
    files: dict[str, set[ObjectVersion]] = {}
    versions = pool.map(lambda uri: services.ledger.arrivals.versions(uri.bucket, uri.key), uris)
    for uri, arrivals in zip(uris, versions, strict=True):
        if not arrivals:
            report.add("unknown", 1, format_unknown_file(uri))
        for arrival in arrivals:
            if arrival.manifest is None:
                report.add("ignored", 1, f"{uri} is IGNORED: {arrival.reason}")
            else:
                files.setdefault(arrival.manifest, set()).add(arrival.file)
    return files


def find_queued(
    services: Services, pool: ThreadPoolExecutor, selection: Selection, report: Report, *, dry_run: bool
) -> dict[str, set[ObjectVersion]]:
    """The files of QUEUED manifests of the selection, by manifest, from the index: a hint.

    The collections of its hours are divided; a dry run reports their files. Manifests of the stream lane are included:
    a promote that crashed may have left them without a pointer. Raises ``InvalidInputError``: more than
    ``MAX_QUEUED_FILES`` files of the batch lane.
    """
    divided = [] if dry_run else divide_selected(services, selection)
    listed, stream = (list(open_rows(services, lane, State.QUEUED, selection)) for lane in (Lane.BATCH, Lane.STREAM))
    batch = list({row.id: row for row in (*divided, *listed)}.values())
    number = sum(row.files for row in batch)
    for manifest in draft_selected(services, selection) if dry_run else ():
        number += len(manifest.files)
        moved = f"{format_count(len(manifest.files), 'file')} of {manifest.partition}"
        report.add("promoted", len(manifest.files), f"{moved} to be in the stream lane, out of the hour's collection")
    if number > MAX_QUEUED_FILES:
        raise InvalidInputError(
            f"the selection holds {format_count(number, 'file')} in {format_count(len(batch), 'manifest')} of the "
            f"batch lane, one promote takes {MAX_QUEUED_FILES:,}: pass a smaller range, or start overnight"
        )
    rows = [*batch, *stream]
    files = {}
    for row, document in zip(rows, pool.map(lambda row: _read(services, row), rows), strict=True):
        if isinstance(document, str):
            report.add("notMoved", row.files, f"manifest {row.id} is left to the run that will fail it: {document}")
        else:
            files[row.id] = set(document.files)
    return files


def _read(services: Services, row: ManifestRow) -> Manifest | str:
    """The manifest, or why it cannot be read."""
    resources = services.resources
    try:
        return read_manifest(services.s3, resources.control_bucket, row, resources.file_buckets)
    except UnusableDocumentError as error:
        return str(error)


def find_listed(
    services: Services, pool: ThreadPoolExecutor, selection: Selection, report: ReprocessReport, stop_at: datetime
) -> Iterator[list[ManifestRow]]:
    """Rows of the selection, a page of the documents' listing at a time, from ``report.after`` on until ``stop_at``.

    Keys of documents begin with the day on which the manifest was made, so the listing begins near the first hour of
    the selection. It is a hint: a document whose row does not exist never became a manifest. ``report.after`` moves on
    after the caller is done with a page, and is empty once all documents are listed.
    """
    after = report.after or _before(selection)
    while True:
        page = services.s3.list_objects_v2(Bucket=services.resources.control_bucket, Prefix=MANIFESTS, StartAfter=after)
        keys = [item["Key"] for item in page.get("Contents", [])]
        ids = [manifest for manifest in map(manifest_of_key, keys) if manifest is not None]
        rows = pool.map(services.ledger.manifests.get, ids)
        yield [row for row in rows if row is not None and selection.selects(row.partition)]
        report.after = after = keys[-1] if page["IsTruncated"] else ""
        if not after or services.clock() >= stop_at:
            return


def _before(selection: Selection) -> str:
    """A key before the first document that can belong to the selection.

    A manifest is made after its files arrive. One day more than enough, because the clocks of S3 and of the function
    that made it may differ.
    """
    if selection.first is None:
        return MANIFESTS
    first = date.fromisoformat(selection.first.partition("T")[0])
    # `strftime` writes no zeros before a year of three digits.
    return manifest_day_prefix(date.fromordinal(max(first.toordinal() - 1, 1)).isoformat())
