"""Which folders of the input bucket have the files of a dataset.

Pages of ListObjectsV2 are read without botocore's model: settle reads 2,200 of them after a large night.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lake.settings.routing import FOLDER, name_of_folder

if TYPE_CHECKING:
    from botocore.session import Session

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


EVENT = "before-parse.*.ListObjectsV2"
"""Only S3 has this operation. By its wildcard the event comes before those of S3: one of botocore's own handlers parses
the answer in search of an error."""
OBJECT = re.compile(
    r"<Contents>"
    + r"(?:<\w+>[^<]*</\w+>)*?".join(
        (
            "",
            r"<Key>([^<&]*)</Key>",
            r"<LastModified>(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z)</LastModified>",
            r"<ETag>((?:&quot;)?[^<&]*(?:&quot;)?)</ETag>",
            r"<Size>(\d+)</Size>",
            "",
        )
    )
    + r"</Contents>"
)
"""An object as S3 writes it: its members in this order, without children, and others between them."""


def read_listings_quickly(session: Session) -> None:
    """Let every S3 client of the session take the objects of a listing out of the answer before botocore parses it.

    botocore parses the whole answer twice, once in search of an error, and compares each member of each object with its
    model. An answer with an object that is written in another way is left to it.
    """

    def take_objects(**event: Any) -> None:  # noqa: ANN401 (the type of botocore's handlers)
        response = event["response_dict"]
        try:
            text = response["body"].decode()
        except UnicodeDecodeError:
            return
        rest = OBJECT.sub("", text)
        if rest != text and "<Contents" not in rest:
            event["customized_response_dict"]["Contents"] = [_object(*found) for found in OBJECT.findall(text)]
            response["body"] = rest.encode()

    session.register(EVENT, take_objects)


def _object(key: str, changed: str, etag: str, size: str) -> dict[str, Any]:
    time = datetime.fromisoformat(changed)
    return {"Key": key, "LastModified": time, "ETag": etag.replace("&quot;", '"'), "Size": int(size)}
