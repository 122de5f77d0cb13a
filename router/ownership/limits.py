"""Which arrivals are taken: not those whose rows may have expired, nor those of datasets beyond ``max_datasets``."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from lake.dataset_rules import folder_of, format_taken, named_datasets
from lake.faults import NO_ANSWER, NoAnswer
from lake.ledger import ArrivalRow
from lake.manifest import ObjectVersion
from lake.settings.operation import CLOCK_MARGIN, MIN_KEPT
from lake.settings.routing import name_of_folder
from router.ownership.owner import UNANSWERED, RoutedArrival
from router.services import Services
from router.telemetry import logger


def _oldest_of(services: Services, files: Iterable[ObjectVersion], now: datetime) -> datetime | None:
    """``LedgerSettings.oldest_arrival`` if it matters for one of the files; without an answer no such file is taken."""
    limit = now - MIN_KEPT + CLOCK_MARGIN
    if not any(_is_before(file, limit) for file in files):
        return None
    try:
        return services.settings.ledger.oldest_arrival(services.ledger.arrivals.expiries(), now)
    except UNANSWERED as error:
        logger.warning("no answer about rows that have expired", error=str(error))
        return limit


def divide_by_expiry(
    services: Services, pool: ThreadPoolExecutor, routed: Sequence[RoutedArrival], now: datetime
) -> tuple[list[RoutedArrival], list[ArrivalRow]]:
    """Divide arrivals: those that may be new; the rows of older ones. Older ones without a row are only logged.

    An older one is never recorded as new: its row may have been deleted after it was converted, and it would be
    converted twice.
    """
    oldest = _oldest_of(services, (arrival.file for arrival in routed), now)
    if oldest is None:
        return list(routed), []
    recent = [arrival for arrival in routed if not _is_before(arrival.file, oldest)]
    old = [arrival.file for arrival in routed if _is_before(arrival.file, oldest)]
    try:
        rows = list(pool.map(services.ledger.arrivals.get, old))
    except UNANSWERED as error:
        logger.warning("no answer about old arrivals", files=len(old), error=str(error))
        return recent, []
    forgotten = [file for file, row in zip(old, rows, strict=True) if row is None]
    if forgotten:
        logger.error(
            "files without a row are older than ledger.keep_days: they may have been converted, so they are not taken; "
            "look for them in the lake, and put a file that is missing there into the input again",
            files=len(forgotten),
            first=forgotten[0].uri,
        )
    return recent, [row for row in rows if row is not None]


def recent_only(
    services: Services, ignored: Mapping[ObjectVersion, str], now: datetime
) -> tuple[dict[ObjectVersion, str], list[ObjectVersion]]:
    """Divide ignored files: those to record, with their reason; those so old that no row is written for them.

    A row that says IGNORED would let a later rule adopt a file that was converted before its own row expired.
    """
    oldest = _oldest_of(services, ignored, now)
    if oldest is None:
        return dict(ignored), []
    old = [file for file in ignored if _is_before(file, oldest)]
    return {file: reason for file, reason in ignored.items() if not _is_before(file, oldest)}, old


def _is_before(file: ObjectVersion, oldest: datetime) -> bool:
    return datetime.fromisoformat(file.arrived_at) < oldest


def divide_by_dataset_limit(
    services: Services, routed: Sequence[RoutedArrival]
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
    datasets = services.ledger.datasets
    answers: dict[str, str | NoAnswer | None]
    try:
        answers = {**datasets.admit(asked, limit)}
    except UNANSWERED as error:
        logger.warning("no answer about new datasets", datasets=len(asked), error=str(error))
        answers = {name: datasets.folders.get(name, NO_ANSWER) for name in asked}
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


def _reason(limit: int) -> str:
    return (
        f"keys have created as many datasets as max_datasets allows ({limit:,}), and its folder would be another: "
        "raise max_datasets and deploy; then the sweep takes recent files, and the state machine backfill takes all"
    )
