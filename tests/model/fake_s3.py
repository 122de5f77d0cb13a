# ruff: noqa: N803 (the names are boto3's)
"""S3 in memory: objects with checksums, multipart uploads that are invisible until completed, and used upload ids."""

import base64
import binascii
import hashlib
import io
import itertools
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from lake.manifest import ObjectVersion


def crc32_of(body: bytes) -> str:
    """The checksum of an object as S3 writes it."""
    return base64.b64encode(struct.pack(">I", binascii.crc32(body))).decode()


def client_error(code: str, message: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


def verify(checksum: str, body: bytes, operation: str) -> None:
    """Raises ``ClientError`` as S3 does when the checksum of a request does not match the body."""
    if checksum != crc32_of(body):
        raise client_error("BadDigest", checksum, operation)


Response = dict[str, Any]


class NoSuchKey(ClientError):  # noqa: N818
    """The name that boto3 uses."""


class Exceptions:
    NoSuchKey = NoSuchKey


@dataclass(frozen=True)
class Object:
    body: bytes
    etag: str
    modified: datetime
    checksum: str | None = None


@dataclass
class Upload:
    bucket: str
    key: str
    has_checksum: bool
    parts: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    state: str = "open"
    """``open``, ``completed`` or ``aborted``."""


def after_empty_pages(listing: Callable[..., Response]) -> Callable[..., Response]:
    """``list_objects_v2`` of a bucket with many deletions: an empty page, with a token, before each real one."""

    def list_objects_v2(*, StartAfter: str = "", ContinuationToken: str = "", **request: Any) -> Response:
        if not ContinuationToken:
            return {"KeyCount": 0, "IsTruncated": True, "NextContinuationToken": f"after {StartAfter}"}
        return listing(StartAfter=ContinuationToken.removeprefix("after "), **request)

    return list_objects_v2


@dataclass(frozen=True)
class Paginator:
    call: Callable[..., Any]

    def paginate(self, **request: Any) -> Any:
        while True:
            page = self.call(**request)
            yield page
            if not page["IsTruncated"]:
                return
            if "Uploads" in page:
                request |= {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}
            elif "Versions" in page:
                request["KeyMarker"] = page["NextKeyMarker"]
            else:
                request["StartAfter"] = page["Contents"][-1]["Key"]


class FakeS3:
    """The calls that the product makes; listings have short pages so that paging is exercised."""

    exceptions = Exceptions
    PAGE_SIZE = 3
    ERRORS = (("SlowDown", 503), ("AccessDenied", 403), ("RequestTimeout", 400), ("ExpiredToken", 400))
    """Amazon S3 API Reference, "Error responses"."""

    def __init__(self, now: datetime, used_id_succeeds: bool = False) -> None:
        self.now = now
        self.buckets: dict[str, dict[str, Object]] = {}
        self.versions: dict[str, dict[str, dict[str, Object]]] = {}
        """For each bucket with versions, the objects by key and version id, oldest first."""
        self.uploads: dict[str, Upload] = {}
        self.with_kms_key: set[str] = set()
        self.used_id_succeeds = used_id_succeeds
        """Whether completing a completed upload again returns 200, as AWS does for a while, or NoSuchUpload."""
        self._numbers = itertools.count(1)

    def create_bucket(self, *, Bucket: str) -> Response:
        self.buckets[Bucket] = {}
        return {}

    def put_object(
        self, *, Bucket: str, Key: str, Body: bytes, ContentType: str = "", IfNoneMatch: str = ""
    ) -> Response:
        if IfNoneMatch and Key in self.buckets[Bucket]:
            raise client_error("PreconditionFailed", Key, "PutObject")
        etag = self._etag(Bucket, Body)
        self.buckets[Bucket][Key] = Object(Body, etag, self.now)
        response = {"ETag": f'"{etag}"'}
        if Bucket not in self.versions:
            return response
        version = f"version-{next(self._numbers):04d}"
        self.versions[Bucket].setdefault(Key, {})[version] = self.buckets[Bucket][Key]
        return {**response, "VersionId": version}

    def has(self, file: ObjectVersion) -> bool:
        """Whether this version of an object can be read; deleting the object keeps its versions."""
        if file.version_id is not None:
            return file.version_id in self.versions[file.bucket].get(file.key, {})
        current = self.buckets[file.bucket].get(file.key)
        return current is not None and current.etag == file.etag

    def get_object(self, *, Bucket: str, Key: str) -> Response:
        if Key not in self.buckets[Bucket]:
            raise NoSuchKey({"Error": {"Code": "NoSuchKey", "Message": Key}}, "GetObject")
        return {"Body": io.BytesIO(self.buckets[Bucket][Key].body)}

    def head_object(self, *, Bucket: str, Key: str, ChecksumMode: str = "") -> Response:
        if Key not in self.buckets[Bucket]:
            raise client_error("404", "Not Found", "HeadObject")
        item = self.buckets[Bucket][Key]
        response = {"ETag": f'"{item.etag}"', "ContentLength": len(item.body)}
        if not ChecksumMode or item.checksum is None:
            return response
        return {**response, "ChecksumCRC32": item.checksum, "ChecksumType": "FULL_OBJECT"}

    def delete_object(self, *, Bucket: str, Key: str) -> Response:
        self.buckets[Bucket].pop(Key, None)
        return {}

    def list_objects_v2(
        self, *, Bucket: str, Prefix: str = "", StartAfter: str = "", MaxKeys: int = PAGE_SIZE, Delimiter: str = ""
    ) -> Response:
        size = min(MaxKeys, self.PAGE_SIZE)
        keys = sorted(key for key in self.buckets[Bucket] if key.startswith(Prefix) and key > StartAfter)
        if Delimiter:
            return _folders(keys, Prefix, Delimiter)
        found = [(key, self.buckets[Bucket][key]) for key in keys[:size]]
        page = [
            {"Key": key, "LastModified": item.modified, "Size": len(item.body), "ETag": f'"{item.etag}"'}
            for key, item in found
        ]
        response: Response = {"KeyCount": len(page), "IsTruncated": len(keys) > size}
        return response | ({"Contents": page} if page else {})

    def get_bucket_versioning(self, *, Bucket: str) -> Response:
        return {"Status": "Enabled"} if Bucket in self.versions else {}

    def list_object_versions(
        self, *, Bucket: str, Prefix: str, KeyMarker: str = "", Delimiter: str = "", **attributes: Sequence[str]
    ) -> Response:
        # No object of a scenario is archived.
        assert attributes in ({}, {"OptionalObjectAttributes": ["RestoreStatus"]})
        current = {key: {"null": item} for key, item in self.buckets[Bucket].items()}
        by_key = self.versions.get(Bucket, current)
        keys = sorted(key for key in by_key if key.startswith(Prefix) and key > KeyMarker)
        if Delimiter:
            return _folders(keys, Prefix, Delimiter)
        versions = []
        for key in keys[: self.PAGE_SIZE]:
            latest = self.buckets[Bucket].get(key)
            for identity, item in reversed(by_key[key].items()):
                version = {"Key": key, "IsLatest": item is latest, "VersionId": identity, "Size": len(item.body)}
                versions.append({**version, "ETag": f'"{item.etag}"', "LastModified": item.modified})
        truncated = len(keys) > self.PAGE_SIZE
        response: Response = {"Versions": versions, "IsTruncated": truncated}
        return response | ({"NextKeyMarker": keys[self.PAGE_SIZE - 1]} if truncated else {})

    def create_multipart_upload(self, *, Bucket: str, Key: str, **checksum: str) -> Response:
        assert checksum in ({"ChecksumAlgorithm": "CRC32", "ChecksumType": "FULL_OBJECT"}, {})
        upload = f"upload-{next(self._numbers):04d}"
        self.uploads[upload] = Upload(Bucket, Key, bool(checksum))
        return {"UploadId": upload}

    def upload_part(
        self, *, PartNumber: int, Body: Any, ContentLength: int = 0, ChecksumCRC32: str = "", **place: str
    ) -> Response:
        upload = self._open_upload("UploadPart", **place)
        body = Body if isinstance(Body, bytes) else Body.read()
        assert ContentLength in (0, len(body))
        etag = self._etag(upload.bucket, body)
        upload.parts[PartNumber] = (etag, body)
        response = {"ETag": f'"{etag}"'}
        if not ChecksumCRC32:
            return response
        verify(ChecksumCRC32, body, "UploadPart")
        return {**response, "ChecksumCRC32": ChecksumCRC32}

    def list_parts(self, **place: str) -> Response:
        parts = self._open_upload("ListParts", **place).parts
        return {"Parts": [{"PartNumber": number, "ETag": f'"{part[0]}"'} for number, part in sorted(parts.items())]}

    def complete_multipart_upload(
        self, *, MultipartUpload: Response, ChecksumCRC32: str = "", ChecksumType: str = "", **place: str
    ) -> Response:
        used = self.uploads.get(place["UploadId"])
        if used is not None and used.state == "completed" and self.used_id_succeeds:
            return {}
        upload = self._open_upload("CompleteMultipartUpload", **place)
        assert not upload.has_checksum or (ChecksumCRC32 and ChecksumType == "FULL_OBJECT")
        for part in MultipartUpload["Parts"]:
            known = upload.parts.get(part["PartNumber"], ("", b""))
            is_named = part.get("ChecksumCRC32") == crc32_of(known[1]) or not upload.has_checksum
            if known[0] != part["ETag"].strip('"') or not is_named:
                raise client_error("InvalidPart", upload.key, "CompleteMultipartUpload")
        parts = [upload.parts[part["PartNumber"]] for part in MultipartUpload["Parts"]]
        body = b"".join(part[1] for part in parts)
        if ChecksumCRC32:
            verify(ChecksumCRC32, body, "CompleteMultipartUpload")
        etag = self._etag(upload.bucket, b"".join(bytes.fromhex(part[0]) for part in parts)) + f"-{len(parts)}"
        checksum = crc32_of(body) if upload.has_checksum else None
        self.buckets[upload.bucket][upload.key] = Object(body, etag, self.now, checksum)
        upload.state = "completed"
        return {"ETag": f'"{etag}"'}

    def abort_multipart_upload(self, **place: str) -> Response:
        self._open_upload("AbortMultipartUpload", **place).state = "aborted"
        return {}

    def get_paginator(self, operation: str) -> Paginator:
        return Paginator(getattr(self, operation))

    def list_multipart_uploads(
        self, *, Bucket: str, Prefix: str = "", KeyMarker: str = "", UploadIdMarker: str = ""
    ) -> Response:
        open_uploads = sorted(
            (upload.key, identity)
            for identity, upload in self.uploads.items()
            if upload.state == "open" and upload.bucket == Bucket and upload.key.startswith(Prefix)
        )
        remaining = [item for item in open_uploads if item > (KeyMarker, UploadIdMarker)]
        page = remaining[: self.PAGE_SIZE]
        response: Response = {"IsTruncated": len(remaining) > self.PAGE_SIZE}
        if page:
            response["Uploads"] = [{"Key": key, "UploadId": identity} for key, identity in page]
            response |= {"NextKeyMarker": page[-1][0], "NextUploadIdMarker": page[-1][1]}
        return response

    def open_uploads(self) -> list[str]:
        """Ids of the uploads that can still be completed."""
        return sorted(identity for identity, upload in self.uploads.items() if upload.state == "open")

    def _etag(self, bucket: str, body: bytes) -> str:
        """The MD5, or in a bucket with a KMS key a value that does not depend on the content alone."""
        return hashlib.md5(f"{next(self._numbers)}".encode() if bucket in self.with_kms_key else body).hexdigest()

    def _open_upload(self, operation: str, *, Bucket: str, Key: str, UploadId: str) -> Upload:
        upload = self.uploads.get(UploadId)
        if upload is None or upload.state != "open" or (upload.bucket, upload.key) != (Bucket, Key):
            raise client_error("NoSuchUpload", UploadId, operation)
        return upload


def _folders(keys: Sequence[str], prefix: str, delimiter: str) -> Response:
    folders = {prefix + key.removeprefix(prefix).partition(delimiter)[0] + delimiter for key in keys}
    return {"CommonPrefixes": [{"Prefix": folder} for folder in sorted(folders)], "IsTruncated": False}
