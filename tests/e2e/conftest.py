"""One local cloud with the product's stack for all end-to-end tests."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from cli.deployed_stack import DeployedStack
from infra.synth import synth
from lake.settings import (
    BatchSettings,
    ConvertSettings,
    DatasetRule,
    DatasetUrgentSettings,
    PeakSettings,
    ScheduleSettings,
    Settings,
    SparkSettings,
    StreamSettings,
    VerifySettings,
)
from local import isolation
from local.cloud import LocalCloud

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.scenario import Scenario


TIME_ZONE = "Europe/Berlin"
URGENT_BY_TAG = "tagged"
"""Dataset and prefix of files whose tags or metadata ``priority=high`` make them urgent."""
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
        datasets=(DatasetRule(URGENT_BY_TAG, f"{URGENT_BY_TAG}/", urgent=by_tag), DatasetRule("{folder}")),
        peak=PeakSettings(hours=()),
        # So small that eight files of 30 KB are eight tasks.
        convert=ConvertSettings(target_file_bytes=20_000, column_limit=200),
        stream=StreamSettings(trigger_seconds=1, idle_minutes=0.2),
        batch=BatchSettings(
            lease_seconds=60, held_wait_seconds=1, max_runs=2, engines=("glue", "glue-flex", "emr-serverless")
        ),
        schedule=ScheduleSettings(
            overnight=NIGHT_START,
            deadline=DEADLINE,
            watch_seconds=1,
            stop_grace_minutes=1,
        ),
        spark=SparkSettings(ui_logs=True),
        # Its schedule does not start during the tests, except in the first hour of a year.
        verify=VerifySettings(share=1.0, start="cron(0 0 1 1 ? *)"),
    )


@pytest.fixture(scope="session")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    """The stack of ``e2e_settings``, deployed unchanged on its own local cloud."""
    from tests.e2e.scenario import Scenario

    folder = tmp_path_factory.mktemp("cloud")
    with LocalCloud.start(folder / "state") as cloud:
        outputs = cloud.deploy(synth(e2e_settings(), folder / "cdk.out"))
        deployment = DeployedStack.connect(
            outputs, isolation.session(cloud.access_key), cloud.endpoint, isolation.client_config()
        )
        yield Scenario(cloud, deployment)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What all tests together have used is looked at by the last one."""
    items.sort(key=lambda item: item.path.name == "test_used_permissions.py")
