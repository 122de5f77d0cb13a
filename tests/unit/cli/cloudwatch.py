"""A CloudWatch with alarms and their history; the emulator of the unit tests has no history."""

from types import SimpleNamespace
from typing import Any


class FakeCloudWatch:
    """Alarms by name with their topic, and changes of their states."""

    def __init__(self, topics: dict[str, str], changes: list[dict[str, Any]]) -> None:
        alarms = [{"AlarmName": name, "AlarmActions": [topic]} for name, topic in topics.items()]
        self._pages = {
            "describe_alarms": {"MetricAlarms": alarms},
            "describe_alarm_history": {"AlarmHistoryItems": changes},
        }
        self.requests: dict[str, dict[str, Any]] = {}

    def get_paginator(self, operation: str) -> Any:
        def paginate(**request: Any) -> list[dict[str, Any]]:
            self.requests[operation] = request
            return [self._pages[operation]]

        return SimpleNamespace(paginate=paginate)
