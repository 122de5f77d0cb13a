"""How long a core works on manifests: by what their dataset measured, else by what the settings assume. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.ledger import DatasetSpeed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lake.ledger import ManifestRow
    from lake.settings import PriceSettings

MEGABYTE = 1_000_000
NOT_MEASURED = DatasetSpeed(None, None)


class Speeds:
    """Speeds of datasets, plain and compressed files apart.

    Parameters
    ----------
    measured
        Of the datasets that have been converted.
    price
        What is assumed of the others: ``mb_per_second_per_core``, ``compressed_mb_per_second_per_core``.
    """

    def __init__(self, measured: Mapping[str, DatasetSpeed], price: PriceSettings) -> None:
        self._measured = measured
        self._plain = price.mb_per_second_per_core * MEGABYTE
        self._compressed = price.compressed_mb_per_second_per_core * MEGABYTE

    def core_seconds(self, row: ManifestRow) -> float:
        """Time of one vCPU of Glue for a manifest."""
        found = self._of(row)
        plain = (row.bytes - row.compressed_bytes) / (found.plain or self._plain)
        return plain + row.compressed_bytes / (found.compressed or self._compressed)

    def is_measured(self, row: ManifestRow) -> bool:
        """Whether the dataset has measured every kind of files that the manifest has."""
        found = self._of(row)
        plain = row.bytes == row.compressed_bytes or found.plain is not None
        return plain and (not row.compressed_bytes or found.compressed is not None)

    def _of(self, row: ManifestRow) -> DatasetSpeed:
        return self._measured.get(row.partition.dataset, NOT_MEASURED)
