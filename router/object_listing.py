"""Pages of ListObjectsV2 are read without botocore's model: settle reads 2,200 of them after a large night."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, ParseError, fromstring, tostring

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from botocore.session import Session

EVENT = "before-parse.s3.ListObjectsV2"
CONVERSIONS: dict[str, Callable[[str], object]] = {"Key": str, "ETag": str, "Size": int}
"""Members of an object that are read, besides ``LastModified``; the others are left out."""


def read_listings_quickly(session: Session, parse_time: Callable[[object], datetime]) -> None:
    """Let every S3 client of the session take the objects of a listing out of the answer before botocore parses it.

    botocore compares each member of each object with its model.
    """
    conversions = {**CONVERSIONS, "LastModified": parse_time}

    def take_objects(**event: Any) -> None:  # noqa: ANN401 (the type of botocore's handlers)
        try:
            root = fromstring(event["response_dict"]["body"])  # noqa: S314 (S3's own answer, which botocore parses as well)
        except ParseError:
            # botocore says what is wrong with it, and repeats the request.
            return
        rest, objects = Element(root.tag), []
        for node in root:
            if node.tag.endswith("}Contents"):
                names = ((member.tag.rpartition("}")[2], member.text or "") for member in node)
                objects.append({name: conversions[name](text) for name, text in names if name in conversions})
            else:
                rest.append(node)
        if objects:
            event["response_dict"]["body"] = tostring(rest)
            event["customized_response_dict"]["Contents"] = objects

    session.register(EVENT, take_objects)
