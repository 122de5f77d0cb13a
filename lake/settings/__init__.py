"""Settings of one stage: frozen, typed, parsed once at the edge; a wrong value names its key and itself."""

from lake.settings.model import (
    BatchSettings,
    ConvertSettings,
    DatasetRule,
    InputSettings,
    PeakSettings,
    PriceSettings,
    ScheduleSettings,
    Settings,
    StreamSettings,
    UrgentSettings,
)
from lake.settings.parse import dump_settings, load_settings, parse_settings
from lake.settings.sweep import SweepSettings

__all__ = [
    "BatchSettings",
    "ConvertSettings",
    "DatasetRule",
    "InputSettings",
    "PeakSettings",
    "PriceSettings",
    "ScheduleSettings",
    "Settings",
    "StreamSettings",
    "SweepSettings",
    "UrgentSettings",
    "dump_settings",
    "load_settings",
    "parse_settings",
]
