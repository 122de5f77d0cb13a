"""`hybrid-router logs`: how far back, and what a person sees of a function's event."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from cli.inspect.logs import format_event, parse_since
from lake.errors import InvalidInputError


def test_minutes_hours_and_days_are_understood() -> None:
    assert [parse_since(text) for text in ("30m", "3h", "2d")] == [
        timedelta(minutes=30),
        timedelta(hours=3),
        timedelta(days=2),
    ]
    for wrong in ("0h", "3", "yesterday", "-1d"):
        with pytest.raises(InvalidInputError, match="pass minutes, hours or days"):
            parse_since(wrong)


def test_an_event_is_its_message_with_the_fields_that_say_something() -> None:
    event = {
        "level": "ERROR",
        "location": "sweep:1",
        "message": "not repaired",
        "service": "sweep",
        "function_arn": "arn:aws:lambda:here",
        "manifest": "m1",
        "exception": "Traceback (most recent call last):\n  File ...\nValueError: why\n",
    }
    assert format_event(json.dumps(event)) == "ERROR   not repaired (manifest m1, exception ValueError: why)"
    assert format_event(json.dumps({"_aws": {}, "SweepStalled": 1})) == ""
    assert format_event("START RequestId: 1 Version: $LATEST") == ""
    assert format_event("2026-11-20T08:00:00Z ALARM a line of a job") == "2026-11-20T08:00:00Z ALARM a line of a job"
