"""Access that is refused for a while: every request of one kind, until an event allows it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from lake.manifest import ObjectVersion

INPUT, ONE_FILE, OUTPUT, READ_DOCUMENTS, WRITE_DOCUMENTS = "input", "one file", "output", "read", "write"
KINDS = (INPUT, ONE_FILE, OUTPUT, READ_DOCUMENTS, WRITE_DOCUMENTS)
BLOCKING = frozenset({INPUT, OUTPUT})
"""Kinds that the preflight finds: a run that begins meanwhile claims nothing."""
DENIED_FILE = "orders/a.ndjson"
"""The file that cannot be read while ``ONE_FILE`` is denied."""
OUTPUT_WRITES = frozenset({"create_multipart_upload", "upload_part", "complete_multipart_upload"})


class DenyingClient:
    """S3 with the requests refused that ``denied`` names; it changes as the history goes on."""

    def __init__(self, client: Any, denied: Collection[str]) -> None:
        self._client, self._denied = client, denied

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._client, name)
        if not self._denied or name == "exceptions":
            return attribute
        return self._unless_denied(name, attribute)

    def _unless_denied(self, operation: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(**request: Any) -> Any:
            if kind_of(operation, request) in self._denied:
                raise access_denied(operation)
            return method(**request)

        return call


def kind_of(operation: str, request: dict[str, Any]) -> str | None:
    """The kind of a request; None: it is never denied."""
    if operation in OUTPUT_WRITES:
        return OUTPUT
    if request.get("Bucket") == "control":
        return {"get_object": READ_DOCUMENTS, "put_object": WRITE_DOCUMENTS}.get(operation)
    return None


def may_read(denied: Collection[str], file: ObjectVersion) -> bool:
    """Whether a job may read the file: the tasks of the model read no bytes."""
    return INPUT not in denied and not (ONE_FILE in denied and file.key == DENIED_FILE)


def access_denied(operation: str) -> ClientError:
    """The answer to a denied request (Amazon S3 API Reference, "Error responses")."""
    response: Any = {"Error": {"Code": "AccessDenied", "Message": "model"}, "ResponseMetadata": {"HTTPStatusCode": 403}}
    return ClientError(response, operation)
