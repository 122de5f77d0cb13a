"""Which part of the backlog a person or a machine means: a dataset, a range of UTC hours, both or neither."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError
from lake.settings.checks import DATASET_NAME
from lake.settings.model import FOLDER
from router.dataset_rules import named_datasets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from lake.ledger import ManifestRow, State
    from lake.manifest import Lane
    from lake.partition import Partition
    from router.services import Services

DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
HOUR = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}")
EXPECTED_TIME = "type a UTC day such as 2026-11-21, or a UTC hour such as 2026-11-21T08"


@dataclass(frozen=True, slots=True)
class Selection:
    """Partitions of one dataset or all, from one UTC hour to another."""

    dataset: str | None = None
    first: str | None = None
    """``YYYY-MM-DDTHH``, inclusive; None: from the beginning."""
    last: str | None = None
    """``YYYY-MM-DDTHH``, inclusive; None: to the end."""

    def selects(self, partition: Partition) -> bool:
        """Whether the partition is within the selection."""
        return (
            self.dataset in (None, partition.dataset)
            and (self.first is None or self.first <= partition.stamp)
            and (self.last is None or partition.stamp <= self.last)
        )


def open_rows(services: Services, lane: Lane, state: State, selection: Selection) -> Iterable[ManifestRow]:
    """Open manifests of the selection as the index has them: a hint."""
    return (row for row in services.ledger.manifests.open(lane, state) if selection.selects(row.partition))


def check_fields(given: Mapping[str, Any], known: Collection[str], machine: str) -> None:
    """Raises ``InvalidInputError`` naming fields that nobody asked for."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise InvalidInputError(f"{machine} does not know the input field {names}: type only {', '.join(known)}")


def fields_of(given: object, known: Collection[str], machine: str, example: str) -> Mapping[str, Any]:
    """What a person typed, if it is an object of known fields; otherwise raises ``InvalidInputError``."""
    if not isinstance(given, dict):
        raise InvalidInputError(f"{machine} needs an object as its input: type {example}")
    check_fields(given, known, machine)
    return given


def check_flag(given: Mapping[str, Any], name: str) -> bool:
    """A field that is true or false, false when it is missing."""
    value = given.get(name, False)
    if not isinstance(value, bool):
        raise InvalidInputError(f"{name} = {value!r} is neither true nor false: type {name}: true, without quotes")
    return value


def parse_selection(given: Mapping[str, Any], services: Services) -> Selection:
    """Read ``dataset``, ``from`` and ``to``; missing or null ones do not restrict.

    A day means all of its 24 hours; ``to`` is inclusive.

    Raises
    ------
    InvalidInputError
        One sentence that says what to type.
    """
    dataset = given.get("dataset")
    if dataset is not None:
        check_dataset(dataset, services)
    first, last = _stamp(given, "from", "00"), _stamp(given, "to", "23")
    if first is not None and last is not None and first > last:
        raise InvalidInputError(
            f"from = {given['from']!r} is later than to = {given['to']!r}: type the earlier time as from"
        )
    return Selection(dataset, first, last)


def check_dataset(dataset: object, services: Services) -> None:
    """Raises ``InvalidInputError`` for a dataset that neither the settings, the ledger nor the input knows."""
    rules = services.settings.datasets
    if isinstance(dataset, str) and DATASET_NAME.fullmatch(dataset):
        if any(rule.name == dataset for rule in rules) or services.ledger.datasets.get(dataset) is not None:
            return
        for rule in rules:
            if rule.name == FOLDER and _has_objects(services, f"{rule.prefix}{dataset}/"):
                return
    known = sorted(named_datasets(rules) | {row.name for row in services.ledger.datasets.all()})
    raise InvalidInputError(
        f"dataset = {dataset!r} is unknown: type one of {', '.join(known)}"
        if known
        else f"dataset = {dataset!r} is unknown: no file of any dataset has arrived yet, so put one into "
        f"s3://{services.resources.input_bucket} first"
    )


def _has_objects(services: Services, prefix: str) -> bool:
    answer = services.s3.list_objects_v2(Bucket=services.resources.input_bucket, Prefix=prefix, MaxKeys=1)
    return answer["KeyCount"] > 0


def _stamp(given: Mapping[str, Any], name: str, hour: str) -> str | None:
    text = given.get(name)
    if text is None:
        return None
    if isinstance(text, str):
        stamp = f"{text}T{hour}" if DAY.fullmatch(text) else text
        if HOUR.fullmatch(stamp):
            try:
                datetime.strptime(stamp, "%Y-%m-%dT%H")
            except ValueError:
                pass
            else:
                return stamp
    raise InvalidInputError(f"{name} = {text!r} is no time: {EXPECTED_TIME}")
