"""Which files forecasts count as compressed. The reader does not ask: it detects a compression by content."""

SUFFIXES = (".gz", ".bz2", ".zst")
INFLATED_RATIO = 8
"""Assumed: bytes of NDJSON for each stored byte of a compressed file."""


def has_compressed_name(key: str) -> bool:
    """Whether the key ends as compressed files do, in any case: a forecast knows no content."""
    return key.lower().endswith(SUFFIXES)
