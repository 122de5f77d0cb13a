"""Settings: an invalid value is reported with its key; suffixes; worker types."""

import json
from pathlib import Path
from typing import Any

import pytest

from lake.engines.description import needed_bytes
from lake.errors import InvalidSettingsError
from lake.settings import (
    DatasetUrgentSettings,
    InputSettings,
    ProtectionSettings,
    dump_settings,
    load_settings,
    parse_settings,
)

KEY = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ALIAS = "arn:aws:kms:eu-central-1:111122223333:alias/lake"
DEV = Path(__file__).parents[3] / "settings" / "dev.toml"


def urgent(**keys: Any) -> dict[str, Any]:
    return {"datasets": [{"name": "orders", "urgent": keys}]}


def test_urgent_rules_of_a_dataset_are_dotted_keys_of_its_table(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(
        'stage = "a"\n[[datasets]]\nname = "orders"\nurgent.tags = ["priority=high", "a=b=*"]\nurgent.max_bytes = 9\n'
    )
    (rule,) = load_settings(file).datasets
    assert rule.urgent == DatasetUrgentSettings(tags=("priority=high", "a=b=*"), max_bytes=9)
    assert parse_settings(json.loads(dump_settings(load_settings(file)))).datasets == (rule,)


def test_the_shipped_file_is_valid_and_unchanged_in_a_lambda_asset(tmp_path: Path) -> None:
    settings = load_settings(DEV)
    asset_file = tmp_path / "settings.json"
    asset_file.write_text(dump_settings(settings), encoding="utf-8")
    assert load_settings(asset_file) == settings


def test_only_the_stage_has_no_default() -> None:
    assert parse_settings({"stage": "dev"}).time_zone == "UTC"


@pytest.mark.parametrize(
    ("changes", "key", "value"),
    [
        ({"stage": "Dev"}, "stage", "Dev"),
        ({"stage": None}, "stage", None),
        ({"stage": "s" * 44}, "stage", "s" * 44),
        ({"tags": ["aws:team=data"]}, "tags", "aws:team=data"),
        ({"tags": ["team"]}, "tags", "team"),
        ({"batch": {"worker_type": "G.2X", "workers": 150}}, "batch.workers", 150),
        ({"input": {"bucket": "landing", "keep_days": 90}}, "input.keep_days", 90),
        ({"encryption": {"bootstrap_key": "alias/cdk"}}, "encryption.bootstrap_key", "alias/cdk"),
        ({"colour": "red"}, "colour", "red"),
        ({"time_zone": "Berlin"}, "time_zone", "Berlin"),
        ({"time_zone": "../etc/passwd"}, "time_zone", "../etc/passwd"),
        ({"peak": {"hour": []}}, "peak.hour", []),
        ({"peak": {"hours": "08:00-20:00"}}, "peak.hours", "08:00-20:00"),
        ({"peak": {"hours": ["8-20"]}}, "peak.hours", "8-20"),
        ({"peak": {"hours": ["08:00-25:00"]}}, "peak.hours", "08:00-25:00"),
        ({"peak": {"hours": ["08:00-08:00"]}}, "peak.hours", "08:00-08:00"),
        ({"peak": {"days": ["Monday"]}}, "peak.days", "Monday"),
        ({"peak": []}, "peak", []),
        ({"input": {"bucket": "No_Bucket"}}, "input.bucket", "No_Bucket"),
        ({"input": {"suffixes": ["json"]}}, "input.suffixes", "json"),
        ({"input": {"suffixes": []}}, "input.suffixes", []),
        ({"datasets": []}, "datasets", []),
        ({"datasets": [{"name": "Orders"}]}, "datasets.name", "Orders"),
        ({"datasets": [{"prefix": "a/"}]}, "datasets.name", None),
        (urgent(tags=["priority"]), "datasets.urgent.tags", "priority"),
        (urgent(tags=["=high"]), "datasets.urgent.tags", "=high"),
        (urgent(tags="a=b"), "datasets.urgent.tags", "a=b"),
        (urgent(metadata=["Priority=high"]), "datasets.urgent.metadata", "Priority=high"),
        (urgent(metadata=["a=b\n"]), "datasets.urgent.metadata", "a=b\n"),
        (urgent(min_bytes=-1), "datasets.urgent.min_bytes", -1),
        (urgent(min_bytes=2, max_bytes=1), "datasets.urgent.max_bytes", 1),
        (urgent(keys=["*"]), "datasets.urgent.keys", ["*"]),
        ({"stream": {"manifest_bytes": 0}}, "stream.manifest_bytes", 0),
        ({"stream": {"manifest_files": 1.5}}, "stream.manifest_files", 1.5),
        ({"stream": {"manifest_files": True}}, "stream.manifest_files", True),
        ({"stream": {"latency_goal_seconds": 0}}, "stream.latency_goal_seconds", 0),
        ({"alarms": {"daily_dollars": -1.0}}, "alarms.daily_dollars", -1.0),
        ({"alarms": {"daily_dollars": "10"}}, "alarms.daily_dollars", "10"),
        ({"batch": {"worker_type": "G.9X"}}, "batch.worker_type", "G.9X"),
        ({"batch": {"worker_type": "G.4X"}}, "batch.worker_type", "G.4X"),
        ({"batch": {"worker_type": "G.025X", "engines": ["glue"]}}, "batch.worker_type", "G.025X"),
        ({"stream": {"worker_type": "G.025X"}}, "stream.worker_type", "G.025X"),
        ({"stream": {"engine": "emr-serverless", "worker_type": "G.8X"}}, "stream.worker_type", "G.8X"),
        ({"stream": {"emr_min_executors": 10}}, "stream.emr_min_executors", 10),
        ({"batch": {"engines": "glue"}}, "batch.engines", "glue"),
        ({"batch": {"engines": []}}, "batch.engines", []),
        ({"batch": {"engines": ["glue", "glue"]}}, "batch.engines", ["glue", "glue"]),
        ({"batch": {"engines": ["glue", "emr"]}}, "batch.engines", "emr"),
        ({"batch": {"engines": [True]}}, "batch.engines", True),
        ({"batch": {"engines": ["glue-flex", "glue"], "worker_type": "G.4X"}}, "batch.worker_type", "G.4X"),
        ({"batch": {"engines": ["emr-serverless"], "worker_type": "G.8X"}}, "batch.worker_type", "G.8X"),
        ({"batch": {"engines": ["emr-serverless"], "workers": 101}}, "emr.max_vcpus", 400),
        ({"emr": {"max_vcpus": 3}}, "emr.max_vcpus", 3),
        ({"emr": {"architecture": "aarch64"}}, "emr.architecture", "aarch64"),
        ({"convert": {"compression": "lzo"}}, "convert.compression", "lzo"),
        ({"schedule": {"overnight": "22:00"}}, "schedule.overnight", "22:00"),
        ({"verify": {"share": 1.5}}, "verify.share", 1.5),
        ({"verify": {"share": -0.1}}, "verify.share", -0.1),
        ({"alarms": {"email": "data team"}}, "alarms.email", "data team"),
        ({"schedule": {"deadline": "6"}}, "schedule.deadline", "6"),
        ({"price": {"dpu_hour": -1.0}}, "price.dpu_hour", -1.0),
        ({"encryption": {"kms_key": ALIAS}}, "encryption.kms_key", ALIAS),
        ({"input": {"bucket": "landing-zone-1", "kms_key": ALIAS}}, "input.kms_key", ALIAS),
        ({"input": {"kms_key": KEY}}, "input.kms_key", KEY),
    ],
)
def test_an_invalid_value_is_reported_with_its_key(changes: dict[str, Any], key: str, value: object) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        parse_settings({name: item for name, item in {"stage": "dev", **changes}.items() if item is not None})
    assert (caught.value.key, caught.value.value) == (key, value)
    assert f"settings: {key} = {value!r} is wrong" in str(caught.value)


@pytest.mark.parametrize("text", [".ndjson", ".jsonl", ".json"])
@pytest.mark.parametrize("codec", ["", ".gz", ".bz2", ".zst"])
def test_every_text_suffix_is_accepted_with_every_codec_of_the_reader(text: str, codec: str) -> None:
    assert InputSettings().suffix_of(f"orders/a{text}{codec}") == text + codec


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("A.NDJSON", ".ndjson"),
        ("a.Json.GZ", ".json.gz"),
        ("a.csv", None),
        ("a.gz", None),
        ("a.ndjson.xz", None),
        ("ndjson", None),
        ("", None),
    ],
)
def test_suffixes_match_in_any_case(name: str, suffix: str | None) -> None:
    assert InputSettings().suffix_of(name) == suffix


def test_the_longest_of_the_configured_suffixes_is_found() -> None:
    assert InputSettings(suffixes=(".gz", ".JSON.gz", ".json")).suffix_of("a.json.GZ") == ".JSON.gz"


def test_a_worker_with_too_little_memory_is_refused_with_the_figures() -> None:
    # Two tasks of 300 MB and 1 GB for the executor exceed what a quarter of a G.1X has outside the heap.
    with pytest.raises(InvalidSettingsError, match=r"its 2 tasks need 1\.6 GB next to the JVM's heap, .* about 1\.3"):
        parse_settings({"stage": "dev", "stream": {"worker_type": "G.025X"}})


@pytest.mark.parametrize("worker_type", ["G.1X", "G.2X", "G.4X", "G.8X"])
def test_the_other_workers_have_memory_for_their_tasks(worker_type: str) -> None:
    lanes = {"stream": {"worker_type": worker_type}, "batch": {"worker_type": worker_type, "engines": ["glue"]}}
    parse_settings({"stage": "dev", **lanes})
    assert needed_bytes(4) == 4 * 300_000_000 + 1_000_000_000


def test_the_error_for_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingsError, match=r"does not exist: pass --settings"):
        load_settings(tmp_path / "prod.toml")


@pytest.mark.parametrize(("name", "text"), [("a.toml", 'stage = "dev"\r\n'), ("a.json", '{"stage": "dev"}')])
def test_a_file_can_begin_with_a_byte_order_mark(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8-sig")
    assert load_settings(file).stage == "dev"


@pytest.mark.parametrize(("name", "text"), [("a.toml", "stage = "), ("a.json", "{")])
def test_a_file_that_cannot_be_parsed_is_reported(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidSettingsError, match="not readable"):
        load_settings(file)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"stage": "dev"}, ProtectionSettings()),
        ({"stage": "prod"}, ProtectionSettings(versions=True, deletion=True)),
        (
            {"stage": "prod", "protection": {"versions": False}},
            ProtectionSettings(deletion=True),
        ),
    ],
)
def test_a_stage_called_prod_protects_its_data_unless_its_settings_refuse(
    body: dict[str, Any], expected: ProtectionSettings
) -> None:
    assert parse_settings(body).protection == expected
