"""The checksum of an uploaded object: S3 verifies it, keeps it with the object, and returns it however it is encrypted.

CRC32, because zlib is in every Python and computes it at the speed of memory, and because S3 keeps it for the whole
object also after a multipart upload, as the type FULL_OBJECT (Amazon S3 User Guide, "Checking object integrity for data
uploads in Amazon S3"). An ETag is an MD5 only in a bucket that no KMS key encrypts.
"""

from __future__ import annotations

import base64
import zlib
from typing import IO, Final

ALGORITHM: Final = "CRC32"
WHOLE_OBJECT: Final = "FULL_OBJECT"
BLOCK_BYTES = 1 << 20


def checksum_of(file: IO[bytes]) -> str:
    """The checksum of the rest of a file, as S3 writes it: 32 bits, big endian, in base64. Reads it to its end."""
    value = 0
    while block := file.read(BLOCK_BYTES):
        value = zlib.crc32(block, value)
    return base64.b64encode(value.to_bytes(4, "big")).decode()
