"""Settings of one stage: frozen, typed, and checked once, when a process parses its file.

``parse_settings`` raises ``InvalidSettingsError`` with every invalid value and its key.
"""

from lake.settings.lanes import BatchSettings, ConvertSettings, StreamSettings
from lake.settings.model import EmrSettings, Settings, dump_settings, load_settings, parse_settings
from lake.settings.operation import (
    AlarmSettings,
    EncryptionSettings,
    LedgerSettings,
    NotifyQuarantine,
    PriceSettings,
    ProtectionSettings,
    QuotaSettings,
    ScheduleSettings,
    SparkSettings,
    SweepSettings,
    TablesSettings,
    VerifySettings,
)
from lake.settings.records import RecordsRule
from lake.settings.routing import DatasetRule, DatasetUrgentSettings, InputSettings, PeakSettings, UrgentSettings
