"""Which folders of the input bucket have the files of a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lake.settings.routing import FOLDER, name_of_folder

if TYPE_CHECKING:
    from router.services import Services

MAX_PAGES = 100
"""Pages of 1,000 folders that are looked through for those of one dataset."""


def folders_of(services: Services, dataset: str) -> list[str]:
    """The folder that has the dataset; while none has it, each folder of the bucket that would get it, sorted."""
    rules = [rule for rule in services.settings.datasets if rule.name == FOLDER]
    owner = services.ledger.datasets.folder(dataset) if rules else dataset
    if owner is not None:
        return [owner]
    found = {dataset}
    for rule in rules:
        for number, page in enumerate(folder_pages(services, rule.prefix)):
            found.update(folder for folder in folders_on(page, rule.prefix) if name_of_folder(folder) == dataset)
            if number == MAX_PAGES:
                break
    return sorted(found)


def folders_on(page: Any, prefix: str) -> Iterator[str]:  # noqa: ANN401
    """The folders after the prefix that a page names."""
    return (item["Prefix"].removeprefix(prefix).removesuffix("/") for item in page.get("CommonPrefixes", []))


def folder_pages(services: Services, prefix: str, stop_at: datetime | None = None) -> Iterator[Any]:
    """Pages of the folders after the prefix, also of those whose current objects are all deleted."""
    markers: dict[str, Any] = {}
    while stop_at is None or services.clock() < stop_at:
        page = services.s3.list_object_versions(
            Bucket=services.resources.input_bucket, Prefix=prefix, Delimiter="/", **markers
        )
        yield page
        if not page["IsTruncated"]:
            return
        markers = {"KeyMarker": page["NextKeyMarker"]}
        if page.get("NextVersionIdMarker"):
            markers["VersionIdMarker"] = page["NextVersionIdMarker"]
