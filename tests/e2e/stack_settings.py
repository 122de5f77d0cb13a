"""The settings of the stack that the end-to-end tests share.

Not in conftest.py, which is loaded twice, by pytest and by importing tests: times of day could differ by a minute.
"""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from lake.settings import (
    BatchSettings,
    ConvertSettings,
    DatasetRule,
    DatasetUrgentSettings,
    PeakSettings,
    ScheduleSettings,
    Settings,
    StreamSettings,
    TablesSettings,
    UrgentSettings,
    VerifySettings,
)
from tests.records import RECORDS

TIME_ZONE = "Europe/Berlin"
URGENT_BY_TAG = "tagged"
"""Dataset and prefix of files whose tags or metadata ``priority=high`` make them urgent."""
WITH_TABLE = "visits"
"""Dataset and prefix of files with an Iceberg table."""
NOW = datetime.now(ZoneInfo(TIME_ZONE))
DEADLINE = f"{NOW + timedelta(hours=12):%H:%M}"
"""Half a day after the start of the tests: a plan has time for Flex."""
NIGHT_START = f"cron({NOW - timedelta(hours=2):%-M %-H} * * ? *)"
"""Two hours before the start of the tests: only tests start a night, and it is not the deadline."""


def e2e_settings() -> Settings:
    """Short waits and no peak hours: the time of day must not matter. A test of peak hours sets the clock itself."""
    by_tag = DatasetUrgentSettings(tags=("priority=high",), metadata=("priority=high",))
    return Settings(
        stage="e2e",
        time_zone=TIME_ZONE,
        datasets=(
            DatasetRule(URGENT_BY_TAG, f"{URGENT_BY_TAG}/", urgent=by_tag),
            DatasetRule(WITH_TABLE, f"{WITH_TABLE}/", table="iceberg"),
            DatasetRule("{folder}"),
        ),
        tables=TablesSettings(commit_seconds=10),
        peak=PeakSettings(hours=()),
        # So small that eight files of 30 KB are eight tasks.
        convert=ConvertSettings(target_file_bytes=20_000, column_limit=200),
        stream=StreamSettings(trigger_seconds=1, idle_minutes=0.2),
        batch=BatchSettings(lease_seconds=60, max_runs=2, engines=("glue", "glue-flex", "emr-serverless")),
        records=RECORDS,
        urgent=UrgentSettings(keys=("*/urgent/*", "clicks/records/*")),
        schedule=ScheduleSettings(
            overnight=NIGHT_START,
            deadline=DEADLINE,
            watch_seconds=1,
        ),
        verify=VerifySettings(share=1.0),
    )
