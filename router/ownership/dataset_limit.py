"""Which arrivals of datasets that keys create are taken: of as many as ``max_datasets`` allows, each of one folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from lake.dataset_rules import folder_of, format_taken, named_datasets
from lake.faults import NO_ANSWER, NoAnswer
from lake.settings.routing import name_of_folder
from router.ownership.outcome import UNANSWERED
from router.telemetry import logger

if TYPE_CHECKING:
    from lake.manifest import ObjectVersion
    from router.ownership.draft import RoutedArrival
    from router.services import Services


def divide_by_dataset_limit(
    services: Services, pool: ThreadPoolExecutor, routed: Sequence[RoutedArrival]
) -> tuple[list[RoutedArrival], list[RoutedArrival], dict[ObjectVersion, str], int]:
    """Divide arrivals: those to own; those whose dataset the ledger gave no answer about; those to ignore, with reason.

    The last part of the answer is the number of those that ``max_datasets`` has no room for. A dataset that a rule
    names outright is never refused, and does not count. Of the folders that would share a dataset one has it.
    """
    named, limit = named_datasets(services.settings.datasets), services.settings.max_datasets
    folders = {arrival.file: _folder(services, arrival) for arrival in routed}
    new: dict[str, set[str]] = {}
    for arrival in routed:
        if (name := arrival.partition.dataset) not in named:
            new.setdefault(name, set()).add(folders[arrival.file] or name)
    # Of new folders the one whose name is that of the dataset gets it.
    asked = {name: name if name in found else min(found) for name, found in new.items()}
    answered = pool.map(lambda name: _owner(services, name, asked[name], named), asked)
    answers = dict(zip(asked, answered, strict=True))
    admitted, unanswered, refused = [], [], {}
    beyond: Counter[str] = Counter()
    for arrival in routed:
        name, folder = arrival.partition.dataset, folders[arrival.file]
        if name not in asked:
            admitted.append(arrival)
        elif (owner := answers[name]) is NO_ANSWER:
            unanswered.append(arrival)
        elif owner is None:
            refused[arrival.file] = _reason(limit)
            beyond[name] += 1
        elif folder in (owner, None):
            admitted.append(arrival)
        else:
            prefix = arrival.file.key.partition(f"{folder}/")[0] + f"{folder}/"
            refused[arrival.file] = format_taken(str(folder), name, f"which the folder {owner!r} has", prefix)
    if beyond:
        logger.error(
            "files of further datasets are ignored: max_datasets is reached",
            max_datasets=limit,
            files=beyond.total(),
            datasets=sorted(beyond)[:10],
        )
    return admitted, unanswered, refused, beyond.total()


def _folder(services: Services, arrival: RoutedArrival) -> str | None:
    """The folder that gives a file its dataset by the rules of today; None: it has the dataset for another reason."""
    if arrival.file.bucket != services.resources.input_bucket:
        return None
    folder = folder_of(arrival.file.key, services.settings.datasets)
    return folder if folder is not None and name_of_folder(folder) == arrival.partition.dataset else None


def _owner(services: Services, name: str, folder: str, named: set[str]) -> str | NoAnswer | None:
    """The folder that has the dataset, or None if there is no room for it."""
    try:
        return services.ledger.datasets.admit(name, services.settings.max_datasets, named, folder)
    except UNANSWERED as error:
        logger.warning("no answer about a dataset", dataset=name, error=str(error))
        return NO_ANSWER


def _reason(limit: int) -> str:
    return (
        f"keys have created as many datasets as max_datasets allows ({limit:,}), and its folder would be another: "
        "raise max_datasets and deploy; then the sweep takes recent files, and the state machine backfill takes all"
    )
