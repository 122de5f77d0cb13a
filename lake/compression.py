"""Which files forecasts count as compressed. The reader does not ask: it detects a compression by content."""

from __future__ import annotations

SUFFIXES = (".gz", ".bz2", ".zst")
"""Of the compressions that the reader knows."""


def has_compressed_name(key: str) -> bool:
    """Whether the key ends as compressed files do, in any case.

    Measurements and forecasts both ask this, because a forecast knows no content: compressed files without such a name
    are measured and forecast among the plain ones of their dataset.
    """
    return key.lower().endswith(SUFFIXES)
