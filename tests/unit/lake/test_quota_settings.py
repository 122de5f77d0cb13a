"""The account's quotas: a night leaves room for the streaming job with all of its workers."""

from typing import Any

import pytest

from lake.errors import InvalidSettingsError
from lake.settings import parse_settings


@pytest.mark.parametrize(
    ("changes", "runs"),
    [
        ({}, 49),
        ({"verify": {"share": 0.01}}, 48),
        ({"stream": {"max_workers": 20}}, 48),
        ({"batch": {"max_runs": 7}}, 7),
        ({"quota": {"dpus": 1000}}, 49),
        ({"quota": {"dpus": 1000, "job_runs": 200}}, 50),
        ({"quota": {"dpus": 1000, "job_runs": 200}, "batch": {"max_runs": 500}}, 99),
        ({"quota": {"job_runs": 10}}, 9),
        ({"batch": {"worker_type": "G.2X"}}, 24),
    ],
    ids=["default", "verification", "larger stream", "max_runs", "DPUs alone", "both", "all", "few runs", "G.2X"],
)
def test_a_night_takes_what_the_stream_leaves(changes: dict[str, Any], runs: int) -> None:
    settings = parse_settings({"stage": "dev", **changes})
    assert settings.max_overnight_runs == runs
    quota = settings.quota
    assert settings.max_batch_runs * settings.run_dpus + settings.stream_dpus <= quota.dpus
    assert settings.max_batch_runs + 1 <= quota.job_runs


@pytest.mark.parametrize(
    "changes",
    [
        {"quota": {"dpus": 19}},
        {"stream": {"max_workers": 299}, "quota": {"dpus": 300}},
        {"quota": {"dpus": 200}, "batch": {"workers": 37}},
    ],
)
def test_quotas_without_room_for_a_run_beside_the_stream_are_refused(changes: dict[str, Any]) -> None:
    batch = {"worker_type": "G.8X", "engines": ["glue"], **changes.get("batch", {})}
    with pytest.raises(InvalidSettingsError, match=r"needs \d+ DPUs, and .* need \d+: take fewer"):
        parse_settings({"stage": "dev", **changes, "batch": batch})
