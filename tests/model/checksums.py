"""Checksums as S3 computes and verifies them; shares no code with the product."""

from __future__ import annotations

import base64
import binascii
import struct

from botocore.exceptions import ClientError


def crc32_of(body: bytes) -> str:
    """The checksum of an object as S3 writes it."""
    return base64.b64encode(struct.pack(">I", binascii.crc32(body))).decode()


def verify(checksum: str, body: bytes, operation: str) -> None:
    """Raises ``ClientError`` as S3 does when the checksum of a request is not that of the body."""
    if checksum != crc32_of(body):
        raise ClientError({"Error": {"Code": "BadDigest", "Message": checksum}}, operation)
