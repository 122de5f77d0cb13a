"""Shared parts of requests: input fields, mainly a selection of datasets and UTC hours, the steps, and the report.

Also the folders of the input bucket with a dataset's files.
"""

import json
import threading
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from lake.dataset_rules import named_datasets
from lake.documents import decode, encode, encode_document
from lake.errors import InvalidInputError, UnknownDatasetError
from lake.layout import S3Uri, list_objects, parse_s3_uri
from lake.ledger import ManifestRow, State
from lake.manifest import Lane, ObjectVersion, Partition, is_manifest_id
from lake.settings.declaration import DATASET_NAME
from lake.settings.routing import FOLDER, name_of_folder
from lake.successors import files_by_successor
from lake.texts import format_names
from router.services import PARALLEL_REQUESTS, Services, in_parallel
from router.telemetry import logger

T = TypeVar("T")

MAX_NAMED = 1_000
"""Maximum number of manifests or files per invocation: each costs a few reads, and a write or a transaction."""
EXPECTED_TIME = "pass a UTC day such as 2026-11-21, or a UTC hour such as 2026-11-21T08"


@dataclass(frozen=True, slots=True)
class Selection:
    """Partitions of one dataset, or of all datasets, within a range of UTC hours."""

    dataset: str | None = None
    first: str | None = None
    """``YYYY-MM-DDTHH``, inclusive; None for no lower bound."""
    last: str | None = None
    """``YYYY-MM-DDTHH``, inclusive; None for no upper bound."""

    def selects(self, partition: Partition) -> bool:
        return self.dataset in (None, partition.dataset) and self.selects_hour(partition.stamp)

    def selects_hour(self, hour: str) -> bool:
        return (self.first is None or self.first <= hour) and (self.last is None or hour <= self.last)

    def fields(self) -> dict[str, str]:
        """Return the selection as the fields that ``parse_selection`` reads."""
        fields = {"dataset": self.dataset, "from": self.first, "to": self.last}
        return {name: value for name, value in fields.items() if value is not None}


def open_rows(services: Services, lane: Lane, state: State, selection: Selection) -> Iterable[ManifestRow]:
    """Open manifests of the selection, oldest first, from the index: a hint, which a consistent read must confirm.

    A damaged row is logged and left to the sweep, which reports it.
    """
    rows = services.ledger.manifests.open(lane, state, lambda error: logger.error("row left out", error=str(error)))
    return (row for row in rows if selection.selects(row.partition))


def parse_fields(given: object, known: Collection[str], function: str, example: str) -> Mapping[str, Any]:
    """``given``, if it is an object with only known fields. Otherwise raises ``InvalidInputError``: what to pass."""
    if not isinstance(given, dict):
        raise InvalidInputError(f"{function} needs an object as its input: pass {example}")
    if unknown := sorted(set(given) - set(known)):
        names = ", ".join(map(repr, unknown))
        raise InvalidInputError(f"{function} does not know the input field {names}: pass only {', '.join(known)}")
    return given


def parse_flag(given: Mapping[str, Any], name: str) -> bool:
    """A field that is true or false; false if it is missing. Raises ``InvalidInputError``."""
    value = given.get(name, False)
    if not isinstance(value, bool):
        raise InvalidInputError(f"{name} = {value!r} is neither true nor false: pass {name}: true, without quotes")
    return value


def parse_selection(given: Mapping[str, Any], services: Services) -> Selection:
    """Read ``dataset``, ``from`` and ``to``; a missing or null field does not restrict the selection.

    A day stands for all of its 24 hours; ``to`` is inclusive. Raises ``UnknownDatasetError``, with the known names, for
    an unknown dataset; ``InvalidInputError`` for an invalid time, or if ``from`` is later than ``to``.
    """
    dataset = given.get("dataset")
    if dataset is not None:
        check_dataset(dataset, services)
    first, last = parse_hours(given)
    return Selection(dataset, first, last)


def parse_target(
    given: Mapping[str, Any], services: Services, lists: Collection[str], function: str, example: str
) -> tuple[tuple[str, ...], tuple[S3Uri, ...], Selection | None]:
    """The target of a request: manifests, files or a selection.

    ``lists`` are the fields of ``manifests`` and ``files`` that ``function`` accepts.

    Raises ``InvalidInputError`` unless there is exactly one kind of target, or for an invalid or too long list; the
    errors of ``parse_selection``.
    """
    kinds = [name for name in lists if given.get(name) is not None]
    if any(given.get(name) is not None for name in ("dataset", "from", "to")):
        kinds.append("a dataset or hours")
    if len(kinds) != 1:
        problem = " and ".join(kinds) if kinds else f"neither {' nor '.join(lists)} nor a dataset or hours"
        raise InvalidInputError(f"{function} was given {problem}: pass {example}")
    if kinds == ["manifests"]:
        return _parse_list(given, "manifests", _parse_manifest_id, function, example), (), None
    if kinds == ["files"]:
        return (), _parse_list(given, "files", parse_s3_uri, function, example), None
    return (), (), parse_selection(given, services)


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
        raise InvalidInputError(f"{given!r} is not a valid manifest id: pass one that explain or a verdict names")
    return given


def parse_hours(given: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Read ``from`` and ``to`` as ``YYYY-MM-DDTHH``, inclusive; None for no bound. A day stands for all its 24 hours.

    Raises ``InvalidInputError``, with what to pass, for an invalid time, or if ``from`` is later than ``to``.
    """
    first, last = _parse_hour(given, "from", "00"), _parse_hour(given, "to", "23")
    if first is not None and last is not None and first > last:
        raise InvalidInputError(
            f"from = {given['from']!r} is later than to = {given['to']!r}: pass the earlier time as from"
        )
    return first, last


def check_dataset(dataset: object, services: Services) -> None:
    """Raise ``UnknownDatasetError`` if settings, ledger and input bucket all do not know the dataset."""
    rules = services.settings.datasets
    if isinstance(dataset, str) and DATASET_NAME.fullmatch(dataset):
        if any(rule.name == dataset for rule in rules) or services.ledger.datasets.is_known(dataset):
            return
        folders, bucket = folders_of(services, dataset), services.resources.input_bucket
        prefixes = (rule.prefix_of(folder) for rule in rules if rule.name == FOLDER for folder in folders)
        if any(True for prefix in prefixes for _ in list_objects(services.s3, bucket, prefix)):
            return
    known = sorted(named_datasets(rules) | set(services.ledger.datasets.names()))
    names = format_names(known) or f"the folders of s3://{services.resources.input_bucket}"
    raise UnknownDatasetError(f"dataset = {dataset!r} is unknown: pass one of {names}")


def _parse_hour(given: Mapping[str, Any], name: str, hour_of_day: str) -> str | None:
    text = given.get(name)
    if text is None:
        return None
    for stamp in (text, f"{text}T{hour_of_day}"):
        with suppress(TypeError, ValueError):
            # Python also reads other forms, which are refused.
            if datetime.strptime(stamp, "%Y-%m-%dT%H").isoformat(timespec="hours") == stamp:
                return str(stamp)
    raise InvalidInputError(f"{name} = {text!r} is not a valid time: {EXPECTED_TIME}")


MAX_MESSAGES = 50
"""Maximum number of messages in one answer."""
MAX_MESSAGE_CHARACTERS = 600
"""Maximum length of a message: reasons quote errors of any length. With 6 bytes for an escaped character, an answer
fits the 256 KiB of a state's result (https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html)."""


@dataclass(slots=True)
class RequestReport:
    """Collects the counts of a request over all invocations, and the messages of one invocation."""

    names: tuple[str, ...]
    """Names of the counts in an answer."""
    counts: Counter[str] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, name: str, number: int, message: str | None = None) -> None:
        """Add ``number`` to the count ``name``, with a message or without. Thread-safe."""
        with self.lock:
            self.counts[name] += number
            if message is not None:
                self.messages.append(message[:MAX_MESSAGE_CHARACTERS])

    def answer(self, *, dry_run: bool) -> dict[str, Any]:
        """The counts, the first ``MAX_MESSAGES`` messages, and the number of ``omitted`` messages."""
        return {
            "dryRun": dry_run,
            **{name: self.counts[name] for name in self.names},
            "messages": self.messages[:MAX_MESSAGES],
            "omitted": max(len(self.messages) - MAX_MESSAGES, 0),
        }


REPLACED = frozenset({State.SUPERSEDED, State.COLLECTED})
"""States of a manifest or part whose successors hold its files."""
Files = set[ObjectVersion] | None
"""Files of a manifest; None for all of its files."""


def visit(
    files: Mapping[str, Files], act: Callable[[str, Files], Mapping[str, Files]], threads: int = PARALLEL_REQUESTS
) -> None:
    """Call ``act`` for each manifest with its files, and then for the successors that it returns, to the end."""
    remaining = dict(files)
    while remaining:
        following: dict[str, Files] = {}
        for found in in_parallel(lambda item: act(*item), remaining.items(), threads):
            for successor, held in found.items():
                earlier = following.get(successor, set())
                following[successor] = None if earlier is None or held is None else earlier | held
        remaining = following


def successors(services: Services, row: ManifestRow, files: Files) -> Mapping[str, Files]:
    """``files`` by the successor of a manifest or part that holds them. Raises the errors of ``files_by_successor``."""
    if files is None:
        return dict.fromkeys(row.superseded_by)
    return dict[str, Files](files_by_successor(services.s3, services.ledger, services.resources, row, files))


def encode_token(progress: object) -> str:
    """An opaque text with which the next invocation continues."""
    return urlsafe_b64encode(encode_document(encode(progress))).decode()


def decode_token(kind: type[T], token: object, function: str) -> T:
    """The progress that ``encode_token`` received; a new one if ``token`` is None.

    Raises ``InvalidInputError`` if ``function`` did not return the token.
    """
    try:
        return kind() if token is None else decode(kind, json.loads(urlsafe_b64decode(token)))  # type: ignore[arg-type]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidInputError(
            f"token is not one that {function} has returned: leave it out to start from the beginning"
        ) from error


def format_unknown_file(uri: S3Uri, input_bucket: str) -> str:
    if uri.bucket != input_bucket:
        return f"{uri} is not in the input bucket s3://{input_bucket}/: pass a file of it, or --stage of another stack"
    version = ", and pass a value of _source without ?versionId=" if "?versionId=" in uri.key else ""
    return (
        f"the ledger has no row of {uri}: check the spelling{version}; if the object exists, its event "
        "has not arrived yet and 'hybrid-router backfill --dataset <dataset> --from <hour> --to <hour>' finds it, or "
        "its row has expired (ledger.keep_days)"
    )


def arrivals_by_manifest(
    services: Services, uris: Sequence[S3Uri], report: RequestReport
) -> Mapping[str, set[ObjectVersion]]:
    """All known versions of the keys, by the manifest that their arrival rows name."""
    files: dict[str, set[ObjectVersion]] = {}
    versions = in_parallel(lambda uri: services.ledger.arrivals.versions(uri.bucket, uri.key), uris)
    for uri, arrivals in zip(uris, versions, strict=True):
        if not arrivals:
            report.add("unknown", 1, format_unknown_file(uri, services.resources.input_bucket))
        for arrival in arrivals:
            if arrival.manifest is None:
                report.add("ignored", 1, f"{uri} is IGNORED: {arrival.reason}")
            else:
                files.setdefault(arrival.manifest, set()).add(arrival.file)
    return files


MAX_PAGES = 100
"""Maximum number of pages, of 1,000 folders each, that are searched for the folders of one dataset."""


def folders_of(services: Services, dataset: str) -> list[str]:
    """The folder that has the dataset. If none has it yet: each folder of the bucket that could get it, sorted."""
    rules = [rule for rule in services.settings.datasets if rule.name == FOLDER]
    owner = services.ledger.datasets.folder(dataset) if rules else dataset
    if owner is not None:
        return [owner]
    found = {dataset}
    for rule in rules:
        for page in islice(folder_pages(services, rule.prefix), MAX_PAGES):
            found.update(folder for folder in folders_on(page, rule.prefix) if name_of_folder(folder) == dataset)
    return sorted(found)


def folders_on(page: Any, prefix: str) -> Iterator[str]:  # noqa: ANN401
    return (item["Prefix"].removeprefix(prefix).removesuffix("/") for item in page.get("CommonPrefixes", []))


def folder_pages(services: Services, prefix: str) -> Iterator[Any]:
    """Pages of the folders after the prefix, including folders whose current objects are all deleted."""
    pages = services.s3.get_paginator("list_object_versions")
    return iter(pages.paginate(Bucket=services.resources.input_bucket, Prefix=prefix, Delimiter="/"))
