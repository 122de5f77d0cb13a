"""Events that lack a size, an ETag or a version: the versions of the key complete them.

Where the bucket has versions, an event without a version must not become an arrival of its own: a listing gives the
same object its version id, and the file would be converted twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError
from lake.manifest import UNVERSIONED, ObjectVersion

if TYPE_CHECKING:
    from router.route.parse import AnnouncedVersion
    from router.services import Services


class VersionLookup:
    """Completes the events of one invocation; a complete event costs no request.

    An event without a version, which is every event of a bucket without versions, costs one request per invocation.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._has_versions: bool | None = None

    def complete(self, announced: AnnouncedVersion) -> ObjectVersion:
        """The arrival that an event announces.

        Raises
        ------
        InvalidInputError
            The event has no size or no ETag, and no version of the key belongs to it.
        BotoCoreError, ClientError
            S3 did not answer: the event has to be redelivered.
        """
        is_input = announced.bucket == self._services.resources.input_bucket
        is_whole = announced.size is not None and announced.etag is not None
        if is_whole and (announced.version_id is not None or not is_input or not self._bucket_has_versions()):
            return announced.version()
        found = self._find(announced) if is_input else None
        if found is not None:
            return found
        if is_whole:
            # Gone by now. The manifest that owns it reports that.
            return announced.version()
        raise InvalidInputError(
            f"the event of s3://{announced.bucket}/{announced.key} has no size or no ETag, and the bucket has no "
            "version of the key that belongs to it: put the file again, if it was deleted by mistake"
        )

    def _bucket_has_versions(self) -> bool:
        """Whether versions were ever switched on; after that the bucket keeps the version ``null`` next to others."""
        if self._has_versions is None:
            bucket = self._services.resources.input_bucket
            self._has_versions = "Status" in self._services.s3.get_bucket_versioning(Bucket=bucket)
        return self._has_versions

    def _find(self, announced: AnnouncedVersion) -> ObjectVersion | None:
        """The version that the event names, or else the newest one with its ETag; None: there is none.

        Without version and ETag it would be a guess.
        """
        if announced.version_id is None and announced.etag is None:
            return None
        etag = None if announced.etag is None else announced.etag.strip('"')
        matching = [
            item
            for item in self._versions(announced.key)
            if announced.version_id in (None, item["VersionId"]) and etag in (None, item["ETag"].strip('"'))
        ]
        if not matching:
            return None
        item = next((item for item in matching if item["VersionId"] == UNVERSIONED), matching[0])
        version = item["VersionId"]
        return ObjectVersion.of(announced.bucket, announced.key, item["ETag"], item["Size"], announced.instant, version)

    def _versions(self, key: str) -> Iterator[Any]:
        """All versions of the key, newest first: S3 lists the keys in order, and a key before its extensions."""
        markers: dict[str, str] = {}
        while True:
            page = self._services.s3.list_object_versions(
                Bucket=self._services.resources.input_bucket,
                Prefix=key,
                **markers,  # type: ignore[arg-type]
            )
            own = [item for item in page.get("Versions", []) if item["Key"] == key]
            yield from own
            if not page["IsTruncated"] or page["NextKeyMarker"] != key:
                return
            markers = {"KeyMarker": page["NextKeyMarker"], "VersionIdMarker": page["NextVersionIdMarker"]}
