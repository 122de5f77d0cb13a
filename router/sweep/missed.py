"""Listing against ledger: objects without an arrival, and arrivals without a live owner, get an owner."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta

from lake.dataset_rules import matching_rule, named_datasets, skip_old_days
from lake.settings.operation import LISTING_DAYS, MAX_REDELIVERY_DAYS, SweepSettings
from lake.settings.routing import FOLDER, name_of_folder
from lake.time import iso_utc
from router.requests.backfill import ListingProgress, ListingRequest, find_unrecorded
from router.requests.selection import folder_pages, folders_on
from router.sweep.repair import Repair, read_progress, write_progress
from router.telemetry import logger

LISTING = "input"
"""Position of the listing that passes over the folders of old days."""
OLD_DAYS = "input-old-days"
"""Position of the listing that reads every key, where there are such folders: a file can still be added to them."""
MAX_BEHIND = {
    # The first round begins LISTING_DAYS back; another one may take as long.
    LISTING: timedelta(days=2 * LISTING_DAYS),
    # A person has WAY_BACK days until a file, or the row of an arrival, may be deleted (min_keep_days).
    OLD_DAYS: timedelta(days=MAX_REDELIVERY_DAYS),
}
"""How far each listing may be behind before the alarm is raised, in addition to the interval of rounds and the age of
what they search for."""
ONE_HOUR = timedelta(hours=1)
HOUR_FORMAT = "%Y-%m-%dT%H"


@dataclass(frozen=True, slots=True)
class InputSearch:
    """Position of the listing of the input bucket: rounds over all datasets, whose hours join without a gap."""

    begun_at: str = ""
    """Start of the current or last round, ISO 8601, UTC; empty: there was none."""
    first: str = ""
    """First hour of that round, ``YYYY-MM-DDTHH``, inclusive."""
    last: str = ""
    covered_until: str = ""
    """Last hour up to which every dataset has been listed; empty: before the first round."""
    dataset: str | None = None
    """The dataset that is being listed; None: the round is complete."""
    token: str | None = None
    """Position within that dataset; None: its beginning."""
    incomplete: bool = False
    """A dataset of this round could not be listed: the next round begins where this one did."""
    passed_over: bool = False
    """Folders of old days were passed over, in this round or in an earlier one."""


def adopt_missed_of_old_days(repair: Repair) -> None:
    """Find such files in the folders of old days, where ``adopt_missed`` has passed over some; counts them as it does.

    A repair of its own: rounds of recent days that follow one another without a pause leave it no time of theirs.
    """
    if _read_search(repair, LISTING).passed_over:
        adopt_missed(repair, OLD_DAYS)


def adopt_missed(repair: Repair, listing: str = LISTING) -> InputSearch:
    """Find files of recent hours without an owner, in the folders of recent days: continue the round, or begin one that
    is due; list one dataset after another. Returns the position.

    Counts object versions that got an owner as ``adopted``, and a listing that is far behind as ``stalled``, also when
    no round is due or no time is left for it: the alarm lasts. A dataset that cannot be listed does not hold back
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
            _keep(repair, listing, search)
        while search.dataset is not None and not repair.expired:
            search = _list_page(repair, listing, search, datasets)
            _keep(repair, listing, search)
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


def _keep(repair: Repair, listing: str, search: InputSearch) -> None:
    if not repair.dry_run:
        write_progress(repair.services, listing, asdict(search))


def begin_round(search: InputSearch, datasets: Sequence[str], now: datetime, settings: SweepSettings) -> InputSearch:
    """The next round. Pure; ``datasets`` are sorted by name.

    It covers whole hours that ended ``sweep.missed_minutes`` before ``now`` (the event of a later object may still be
    on its way), for ``LISTING_DAYS``, and further back to the last complete round, however long ago that was.
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
    dataset, token, is_listed = search.dataset, None, False
    with repair.isolated("dataset", dataset=dataset):
        before = ListingProgress.of(search.token).recorded
        reason = f"found by the sweep, {search.first} to {search.last}"
        request = ListingRequest(
            dataset, search.first, search.last, reason, dry_run=repair.dry_run, leave_unsettled=True
        )
        result = find_unrecorded(repair.services, request, search.token, timedelta(0))
        adopted = result["recorded"] - before
        if adopted:
            repair.counts["adopted"] += adopted
            logger.warning("missed arrivals", dataset=dataset, files=adopted, dry_run=repair.dry_run)
        token, is_listed = result["token"], True
    search = replace(search, token=token, incomplete=search.incomplete or not is_listed)
    if token is not None:
        at = ListingProgress.of(token)
        marker = skip_old_days(at.key_marker, search.first)
        if listing == LISTING and marker != at.key_marker:
            token = replace(at, key_marker=marker, version_marker="").token()
            return replace(search, token=token, passed_over=True)
        return search
    following = _following(dataset, datasets)
    search = replace(search, dataset=following)
    return end_round(search) if following is None else search


def end_round(search: InputSearch) -> InputSearch:
    """The end of a round: its hours count as covered only if all of its datasets were listed. Pure."""
    return search if search.incomplete else replace(search, covered_until=max(search.covered_until, search.last))


def _following(dataset: str, datasets: Sequence[str]) -> str | None:
    return min((name for name in datasets if name > dataset), default=None)


def _read_search(repair: Repair, listing: str) -> InputSearch:
    try:
        return InputSearch(**read_progress(repair.services, listing))
    except TypeError:
        # Another version of the code has written it.
        return InputSearch()


def find_datasets(repair: Repair) -> tuple[list[str], bool]:
    """Datasets sorted by name; False: not all folders could be listed, so some datasets may be missing.

    A dataset whose events were all lost is not in the ledger: only its folder shows it, also when all of its
    current objects have been deleted. Folders for which ``max_datasets`` has no room are left out: their files stay
    IGNORED, and memory and time of a round are bounded.
    """
    services = repair.services
    rules = services.settings.datasets
    datasets = services.ledger.datasets
    names, admitted = named_datasets(rules) | set(datasets.names()), set(datasets.admitted())
    # Datasets that a rule has named before do not count, and a lower limit takes none back.
    room = max(services.settings.max_datasets - datasets.number(), 0)
    # The other half of the time is for the listing of what was found.
    stop_at = services.clock() + (repair.stop_at - services.clock()) / 2
    all_found = True
    for rule in rules:
        if rule.name != FOLDER:
            continue
        is_listed = False
        with repair.isolated("folders", prefix=rule.prefix):
            for page in folder_pages(services, rule.prefix, stop_at):
                unknown = (folder for folder in folders_on(page, rule.prefix) if name_of_folder(folder) not in names)
                # The keys of a folder can be those of a dataset with another name, or of none.
                found = {matching_rule(rule.prefix_of(folder), rules)[1] for folder in unknown} - {"", *names}
                new = sorted(found - admitted)
                names.update(found & admitted, new[: max(room, 0)])
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
