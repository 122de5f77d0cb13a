"""Compares listings with the ledger, so that objects without an arrival or a live owner get an owner."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta

from lake.dataset_rules import matching_rule, named_datasets, skip_old_days
from lake.documents import decode_partial
from lake.settings.operation import LISTING_DAYS, MAX_REDELIVERY_DAYS, SweepSettings
from lake.settings.routing import FOLDER, name_of_folder
from lake.time import iso_utc
from router.requests.backfill import NOT_BEGUN, ListingProgress, ListingRequest, find_unrecorded
from router.requests.selection import folder_pages, folders_on
from router.sweep.repair import Repair
from router.telemetry import logger

LISTING = "input"
"""Name of the listing that skips the folders of old days."""
OLD_DAYS = "input-old-days"
"""Name of the listing that reads every key if there are such folders: a file can still be added to them."""
MAX_BEHIND = {
    # The first round begins LISTING_DAYS back, and the next one may take as long.
    LISTING: timedelta(days=2 * LISTING_DAYS),
    # A person has DAYS_TO_ACT days until a file, or the row of an arrival, may be deleted (min_keep_days).
    OLD_DAYS: timedelta(days=MAX_REDELIVERY_DAYS),
}
"""Maximum delay of each listing before the alarm is raised, in addition to the interval of rounds and the age of the
searched files."""
ONE_HOUR = timedelta(hours=1)
HOUR_FORMAT = "%Y-%m-%dT%H"


@dataclass(frozen=True, slots=True)
class InputSearch:
    """Position of the listing of the input bucket, in rounds over all datasets whose hours join without a gap."""

    begun_at: str = ""
    """Start of the current or last round, ISO 8601, UTC; empty before the first round."""
    first: str = ""
    """First hour of the round, ``YYYY-MM-DDTHH``, inclusive."""
    last: str = ""
    covered_until: str = ""
    """Last hour up to which every dataset was listed; empty before the first round."""
    dataset: str | None = None
    """The dataset that is being listed; None after a round."""
    progress: ListingProgress = NOT_BEGUN
    """Position within this dataset."""
    incomplete: bool = False
    """Whether a dataset of this round could not be listed: then the next round begins with the same hour."""
    passed_over: bool = False
    """Whether folders of old days were skipped, in this round or an earlier one."""


def adopt_missed_of_old_days(repair: Repair) -> None:
    """Do the work of ``adopt_missed`` in the folders of old days, if it has skipped any.

    It is a repair of its own, because rounds of recent days without a pause would leave it no time.
    """
    if _read_search(repair, LISTING).passed_over:
        adopt_missed(repair, OLD_DAYS)


def adopt_missed(repair: Repair, listing: str = LISTING) -> InputSearch:
    """Find files of recent hours without an owner, in the folders of recent days. It continues the round, or begins one
    that is due, and lists one dataset after another. Returns the position.

    Counts object versions that got an owner as ``adopted``, and a listing that is very late as ``stalled``, even if no
    round is due or no time is left, so that the alarm lasts. A dataset that cannot be listed does not hold up the
    others.
    """
    search, settings = _read_search(repair, listing), repair.services.settings.sweep
    interval, now = timedelta(hours=settings.listing_hours), repair.services.clock()
    is_due = not search.begun_at or now - datetime.fromisoformat(search.begun_at) >= interval
    if not repair.expired and (search.dataset is not None or is_due):
        datasets, all_found = find_datasets(repair)
        if search.dataset is None:
            search = begin_round(search, datasets, repair.services.clock(), settings)
        search = replace(search, incomplete=search.incomplete or not all_found)
        if search.dataset is None:
            search = end_round(search)
            repair.save_position(listing, asdict(search))
        while search.dataset is not None and not repair.expired:
            search = _list_page(repair, listing, search, datasets)
            repair.save_position(listing, asdict(search))
    if search.covered_until:
        now = repair.services.clock()
        behind = now - datetime.strptime(search.covered_until, HOUR_FORMAT).replace(tzinfo=UTC)
        is_stalled = behind > MAX_BEHIND[listing] + interval + timedelta(minutes=settings.missed_minutes)
        repair.counts["stalled"] += is_stalled
        (logger.warning if is_stalled else logger.info)(
            "listing of missed events",
            listing=listing,
            dataset=search.dataset,
            covered_until=search.covered_until,
            hours_behind=behind // ONE_HOUR,
        )
    return search


def begin_round(search: InputSearch, datasets: Sequence[str], now: datetime, settings: SweepSettings) -> InputSearch:
    """The next round. Pure; ``datasets`` are sorted by name.

    It covers whole hours that ended ``sweep.missed_minutes`` before ``now``, as events of later objects may still
    arrive. It begins ``LISTING_DAYS`` back, or with the last hour of the last complete round if this is earlier.
    """
    end = now.astimezone(UTC) - timedelta(minutes=settings.missed_minutes) - ONE_HOUR
    window = (end - timedelta(days=LISTING_DAYS)).strftime(HOUR_FORMAT)
    covered_until = search.covered_until or window
    return InputSearch(
        begun_at=iso_utc(now),
        first=min(window, covered_until),
        last=end.strftime(HOUR_FORMAT),
        covered_until=covered_until,
        dataset=_following("", datasets),
        passed_over=search.passed_over,
    )


def _list_page(repair: Repair, listing: str, search: InputSearch, datasets: Sequence[str]) -> InputSearch:
    assert search.dataset is not None
    dataset = search.dataset
    progress: ListingProgress | None = None
    with repair.isolated("dataset", dataset=dataset):
        reason = f"found by the sweep, {search.first} to {search.last}"
        request = ListingRequest(
            dataset, search.first, search.last, reason, dry_run=repair.dry_run, leave_unsettled=True
        )
        progress = find_unrecorded(repair.services, request, search.progress, timedelta(0))
        adopted = progress.recorded - search.progress.recorded
        if adopted:
            repair.counts["adopted"] += adopted
            logger.warning("missed arrivals", dataset=dataset, files=adopted, dry_run=repair.dry_run)
    if progress is not None and not progress.is_complete:
        marker = skip_old_days(progress.key_marker, search.first)
        if listing == LISTING and marker != progress.key_marker:
            progress = replace(progress, key_marker=marker, version_marker="")
            return replace(search, progress=progress, passed_over=True)
        return replace(search, progress=progress)
    incomplete, following = search.incomplete or progress is None, _following(dataset, datasets)
    search = replace(search, dataset=following, progress=NOT_BEGUN, incomplete=incomplete)
    return end_round(search) if following is None else search


def end_round(search: InputSearch) -> InputSearch:
    """End a round. Its hours count as covered only if all datasets were listed. Pure."""
    return search if search.incomplete else replace(search, covered_until=max(search.covered_until, search.last))


def _following(dataset: str, datasets: Sequence[str]) -> str | None:
    return min((name for name in datasets if name > dataset), default=None)


def _read_search(repair: Repair, listing: str) -> InputSearch:
    return decode_partial(InputSearch(), repair.read_position(listing))


def find_datasets(repair: Repair) -> tuple[list[str], bool]:
    """Datasets sorted by name, and whether all folders were listed; if not, some datasets may be missing.

    A dataset whose events were all lost is not in the ledger, so it is found only by its folder, even if all current
    objects there are deleted. Folders without room in ``max_datasets`` are omitted: their files stay IGNORED, and a
    round has limited memory and time.
    """
    services = repair.services
    rules = services.settings.datasets
    datasets = services.ledger.datasets
    names = named_datasets(rules) | set(datasets.names())
    # Datasets that a rule named earlier do not count, and a lower limit removes none.
    room = max(services.settings.max_datasets - datasets.number(), 0)
    # The other half of the time is for listing these datasets.
    stop_at = services.clock() + (repair.stop_at - services.clock()) / 2
    all_found = True
    for rule in rules:
        if rule.name != FOLDER:
            continue
        is_listed = False
        with repair.isolated("folders", prefix=rule.prefix):
            pages = folder_pages(services, rule.prefix)
            while services.clock() < stop_at and (page := next(pages, None)) is not None:
                unknown = (folder for folder in folders_on(page, rule.prefix) if name_of_folder(folder) not in names)
                # The keys of a folder can belong to a dataset with another name, or to none.
                new = sorted({matching_rule(rule.prefix_of(folder), rules)[1] for folder in unknown} - {"", *names})
                names.update(new[: max(room, 0)])
                room -= len(new)
                is_listed = not page["IsTruncated"]
            if not is_listed:
                logger.error(
                    "too many folders to list: datasets without an event are not found, name them in [[datasets]]",
                    prefix=rule.prefix,
                )
        all_found = all_found and is_listed
    if room < 0:
        logger.error("folders beyond max_datasets are not listed: raise it and deploy", folders=-room)
    return sorted(names), all_found
