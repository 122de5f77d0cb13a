"""Settings at random for one history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.settings import (
    BatchSettings,
    ConvertSettings,
    DatasetRule,
    PeakSettings,
    Settings,
    StreamSettings,
    SweepSettings,
    TablesSettings,
)

if TYPE_CHECKING:
    from random import Random

WITH_TABLE = "clicks"
DATASETS = ("orders", WITH_TABLE)


def random_settings(random: Random) -> Settings:
    """Small limits, so that a few lines make several splits, tasks, manifests and runs."""
    return Settings(
        "chaos",
        datasets=(DatasetRule("orders", "orders/"), DatasetRule(WITH_TABLE, f"{WITH_TABLE}/", table="iceberg")),
        tables=TablesSettings(keep_hours=1),
        peak=PeakSettings(hours=()),
        stream=StreamSettings(manifest_files=random.randint(1, 3)),
        batch=BatchSettings(manifest_files=random.randint(2, 6), max_attempts=random.randint(1, 3), engines=("glue",)),
        convert=ConvertSettings(
            split_bytes=random.choice([64, 300, 1 << 20]), target_file_bytes=random.choice([64, 500, 1 << 20])
        ),
        sweep=SweepSettings(listing_hours=0),
    )
