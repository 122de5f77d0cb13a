"""Which folders of the input bucket have the files of a dataset.

Pages of ListObjectsV2 are read without botocore's model: settle reads 2,200 of them after a large night.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, ParseError, fromstring, tostring

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


EVENT = "before-parse.*.ListObjectsV2"
"""Only S3 has this operation. By its wildcard the event comes before those of S3: one of botocore's own handlers parses
the answer in search of an error."""
CONVERSIONS: dict[str, Callable[[str], object]] = {"Key": str, "ETag": str, "Size": int}
"""Members of an object that are read, apart from ``LastModified``; the others are left out."""
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


def read_listings_quickly(session: Session, parse_time: Callable[[object], datetime]) -> None:
    """Let every S3 client of the session take the objects of a listing out of the answer before botocore parses it.

    botocore parses the whole answer twice, once in search of an error, and compares each member of each object with its
    model.
    """
    conversions = {**CONVERSIONS, "LastModified": parse_time}

    def take_objects(**event: Any) -> None:  # noqa: ANN401 (the type of botocore's handlers)
        response = event["response_dict"]
        found = _take_plain_objects(response["body"]) or _take_any_objects(response["body"], conversions)
        if found is not None and found[0]:
            event["customized_response_dict"]["Contents"], response["body"] = found

    session.register(EVENT, take_objects)


def _take_plain_objects(body: bytes) -> tuple[list[dict[str, Any]], bytes] | None:
    """The objects, and the answer without them, by the bytes that S3 writes; None: they are not all like that."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    objects = [
        {
            "Key": key,
            "LastModified": datetime.fromisoformat(changed),
            "ETag": etag.replace("&quot;", '"'),
            "Size": int(size),
        }
        for key, changed, etag, size in OBJECT.findall(text)
    ]
    rest = OBJECT.sub("", text)
    return None if "<Contents" in rest else (objects, rest.encode())


def _take_any_objects(
    body: bytes, conversions: dict[str, Callable[[str], object]]
) -> tuple[list[dict[str, Any]], bytes] | None:
    """Read a page with an XML parser; None if it is not XML."""
    try:
        root = fromstring(body)  # noqa: S314 (S3's own answer, which botocore parses as well)
    except ParseError:
        # botocore says what is wrong with it, and repeats the request.
        return None
    rest, objects = Element(root.tag), []
    for node in root:
        if node.tag.endswith("}Contents"):
            names = ((member.tag.rpartition("}")[2], member.text or "") for member in node)
            objects.append({name: conversions[name](text) for name, text in names if name in conversions})
        else:
            rest.append(node)
    return objects, tostring(rest)
