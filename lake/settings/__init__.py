"""Settings of one stage: frozen, typed, parsed once at the start of a process.

An invalid value raises ``InvalidSettingsError`` with its key and itself.
"""

from lake.settings.alarms import AlarmSettings, NotifyQuarantine
from lake.settings.conversion import ConvertSettings
from lake.settings.emr import EmrSettings
from lake.settings.encryption import EncryptionSettings
from lake.settings.lanes import BatchSettings, StreamSettings
from lake.settings.ledger import LedgerSettings
from lake.settings.model import Settings
from lake.settings.parse import dump_settings, load_settings, parse_settings
from lake.settings.price import PriceSettings
from lake.settings.protection import ProtectionSettings
from lake.settings.quota import QuotaSettings
from lake.settings.records import RecordsRule
from lake.settings.routing import DatasetRule, DatasetUrgentSettings, InputSettings, PeakSettings, UrgentSettings
from lake.settings.schedule import ScheduleSettings
from lake.settings.spark import SparkSettings
from lake.settings.sweep import SweepSettings
from lake.settings.verify import VerifySettings

__all__ = [
    "AlarmSettings",
    "BatchSettings",
    "ConvertSettings",
    "DatasetRule",
    "DatasetUrgentSettings",
    "EmrSettings",
    "EncryptionSettings",
    "InputSettings",
    "LedgerSettings",
    "NotifyQuarantine",
    "PeakSettings",
    "PriceSettings",
    "ProtectionSettings",
    "QuotaSettings",
    "RecordsRule",
    "ScheduleSettings",
    "Settings",
    "SparkSettings",
    "StreamSettings",
    "SweepSettings",
    "UrgentSettings",
    "VerifySettings",
    "dump_settings",
    "load_settings",
    "parse_settings",
]
