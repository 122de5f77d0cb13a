"""All datasets that the input bucket may have files of: of the rules, of the ledger, and of the bucket's folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.dataset_rules import named_datasets
from lake.settings.routing import FOLDER, name_of_folder
from router.listing.folders import folder_pages, folders_on
from router.telemetry import logger

if TYPE_CHECKING:
    from router.sweep.repair import Repair


def find_datasets(repair: Repair) -> tuple[list[str], bool]:
    """Datasets sorted by name; False: not all folders could be listed, so some datasets may be missing.

    A dataset whose events were all lost is not in the ledger: only its folder tells of it, also when all of its
    current objects have been deleted. Folders for which ``max_datasets`` has no room are left out: their files stay
    IGNORED, and memory and time of a round are bounded.
    """
    services = repair.services
    named = named_datasets(services.settings.datasets)
    names = named | set(services.ledger.datasets.names())
    room = services.settings.max_datasets - len(names - named)
    # The other half of the time is for the listing of what was found.
    stop_at = services.clock() + (repair.stop_at - services.clock()) / 2
    all_found = True
    for rule in services.settings.datasets:
        if rule.name != FOLDER:
            continue
        is_listed = False
        with repair.isolated("folders", prefix=rule.prefix):
            for page in folder_pages(services, rule.prefix, stop_at):
                given = {name_of_folder(folder) for folder in folders_on(page, rule.prefix)} - {""}
                new = sorted(given - names)
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
