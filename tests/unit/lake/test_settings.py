"""Settings: each invalid value is reported with its key, all at once; suffixes; quotas; workers.

``[[records]]``: one source each, a unique name, and keys that the rules of the datasets take.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from infra.names import stack_name
from lake.engines.emr_serverless import EmrLaunch
from lake.errors import InvalidInputError, InvalidSettingsError
from lake.settings import (
    DatasetRule,
    DatasetUrgentSettings,
    InputSettings,
    ProtectionSettings,
    RecordsRule,
    dump_settings,
    load_settings,
    parse_settings,
)
from lake.settings.records import FAILED_RECORDS, MAX_NAMES
from lake.shards import MAX_SHARDS

KEY = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
CHINESE = KEY.replace("arn:aws:kms:eu-central-1", "arn:aws-cn:kms:cn-north-1")
ABROAD = KEY.replace("eu-central-1", "us-east-1")
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


@pytest.mark.parametrize(
    ("changes", "key", "value"),
    [
        ({"stage": "Dev"}, "stage", "Dev"),
        ({"stage": "s" * 44}, "stage", "s" * 44),
        ({"stage": "dev_tables"}, "stage", "dev_tables"),
        ({"tags": ["AWS:team=data"]}, "tags", "AWS:team=data"),
        ({"tags": ["team="]}, "tags", "team="),
        ({"tags": ["team=L\u00fcbeck"], "batch": {"engines": ["glue", "emr-serverless"]}}, "tags", "team=L\u00fcbeck"),
        ({"tags": ["team=a", "Team=b"]}, "tags", "Team=b"),
        ({"tags": ["hybrid-router:stage=b"]}, "tags", "hybrid-router:stage=b"),
        ({"tags": [f"t{number}=a" for number in range(50)]}, "tags", 50),
        ({"batch": {"worker_type": "G.2X", "workers": 150}}, "batch.workers", 150),
        ({"input": {"bucket": "landing", "keep_days": 90}}, "input.keep_days", 90),
        *(
            ({"input": {"bucket": name}}, "input.bucket", name)
            for name in ("a..b", "a.-b", "a-.b", "192.168.1.1", "b" * 64, "logs--use1-az4--x-s3", "logs-s3alias")
        ),
        ({"time_zone": "../etc/passwd"}, "time_zone", "../etc/passwd"),
        ({"time_zone": "localtime"}, "time_zone", "localtime"),
        ({"time_zone": "right/Europe/Berlin"}, "time_zone", "right/Europe/Berlin"),
        ({"peak": {"hour": []}}, "peak.hour", []),
        ({"peak": {"hours": "08:00-20:00"}}, "peak.hours", "08:00-20:00"),
        ({"peak": {"hours": ["08:00-25:00"]}}, "peak.hours", "08:00-25:00"),
        ({"peak": {"hours": ["0\u0668:00-20:00"]}}, "peak.hours", "0\u0668:00-20:00"),
        ({"peak": {"hours": ["08:00-08:00"]}}, "peak.hours", "08:00-08:00"),
        ({"peak": {"hours": ["24:00-00:00"]}}, "peak.hours", "24:00-00:00"),
        ({"input": {"suffixes": ["json"]}}, "input.suffixes", "json"),
        ({"input": {"suffixes": []}}, "input.suffixes", []),
        ({"datasets": [{"name": "Orders"}]}, "datasets.name", "Orders"),
        ({"datasets": [{"name": "{folder}", "prefix": "a/{folder}/"}]}, "datasets.prefix", "a/{folder}/"),
        ({"datasets": [{"name": "a", "prefix": "s3://bucket/a/"}]}, "datasets.prefix", "s3://bucket/a/"),
        ({"datasets": [{"name": "a", "prefix": "a/*"}]}, "datasets.prefix", "a/*"),
        (urgent(tags=["priority"]), "datasets.urgent.tags", "priority"),
        (urgent(metadata=["Priority=high"]), "datasets.urgent.metadata", "Priority=high"),
        (urgent(metadata=["a=b\n"]), "datasets.urgent.metadata", "a=b\n"),
        (urgent(min_bytes=2, max_bytes=1), "datasets.urgent.max_bytes", 1),
        ({"stream": {"manifest_files": 1.5}}, "stream.manifest_files", 1.5),
        ({"stream": {"manifest_files": True}}, "stream.manifest_files", True),
        ({"batch": {"worker_type": "G.4X"}}, "batch.worker_type", "G.4X"),
        ({"batch": {"worker_type": "G.025X", "engines": ["glue"]}}, "batch.worker_type", "G.025X"),
        ({"stream": {"engine": "emr-serverless", "worker_type": "G.8X"}}, "stream.worker_type", "G.8X"),
        ({"stream": {"emr_min_executors": 10}}, "stream.emr_min_executors", 10),
        ({"batch": {"engines": []}}, "batch.engines", []),
        ({"batch": {"engines": ["glue", "glue"]}}, "batch.engines", ["glue", "glue"]),
        ({"batch": {"engines": ["emr-serverless"], "workers": 101}}, "emr.max_vcpus", 400),
        ({"schedule": {"overnight": "22:00"}}, "schedule.overnight", "22:00"),
        ({"encryption": {"kms_key": ALIAS}}, "encryption.kms_key", ALIAS),
        ({"encryption": {"kms_key": KEY[:-1]}}, "encryption.kms_key", KEY[:-1]),
        # The state machines use the partition aws, and a stack uses the resources of its own region.
        ({"encryption": {"kms_key": CHINESE}}, "encryption.kms_key", CHINESE),
        ({"encryption": {"kms_key": KEY, "bootstrap_key": ABROAD}}, "encryption.bootstrap_key", ABROAD),
        ({"input": {"kms_key": KEY}}, "input.kms_key", KEY),
        ({"stream": {"jobs": MAX_SHARDS + 1}}, "stream.jobs", MAX_SHARDS + 1),
        # The nights need capacity in addition to the streaming jobs.
        ({"stream": {"jobs": 5}, "quota": {"dpus": 55}}, "quota.dpus", 55),
        ({"tables": {"commit_seconds": 10, "keep_hours": 121.0}}, "tables.keep_hours", 121.0),
        # A window must not end at its start time.
        ({"schedule": {"overnight": "cron(0 6 * * ? *)"}}, "schedule.deadline", "06:00"),
        ({"schedule": {"stream_start": "cron(15 20 ? * MON-FRI *)"}}, "schedule.stream_end", "20:15"),
        ({"convert": {"max_core_minutes": 241.0}}, "convert.max_core_minutes", 241.0),
        ({"convert": {"min_bytes_per_second": 70_000}}, "convert.min_bytes_per_second", 70_000),
    ],
)
def test_an_invalid_value_is_reported_with_its_key(changes: dict[str, Any], key: str, value: object) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        parse_settings({name: item for name, item in {"stage": "dev", **changes}.items() if item is not None})
    assert (caught.value.key, caught.value.value) == (key, value)
    assert f"settings: {key} = {value!r} is wrong" in str(caught.value)


@pytest.mark.parametrize(("seconds", "hours"), [(10, 120.0), (25, 360.0), (31, 720.0)])
def test_snapshots_are_kept_as_long_as_their_number_allows(seconds: int, hours: float) -> None:
    # The function checks for new publishes a whole number of times a minute.
    settings = parse_settings({"stage": "dev", "tables": {"commit_seconds": seconds, "keep_hours": hours}})
    assert settings.tables.keep_hours == hours


@pytest.mark.parametrize("value", [[["list"] * 100_000], 1 << 20_000], ids=["list", "more digits than Python writes"])
def test_a_value_that_is_too_long_for_a_message_is_cut(value: object) -> None:
    with pytest.raises(InvalidSettingsError, match=r"settings: stream\.jobs = .* is wrong: expected a") as caught:
        parse_settings({"stage": "dev", "stream": {"jobs": value}})
    assert len(str(caught.value)) < 1_200


def test_a_tag_may_have_the_letters_that_each_engine_of_the_stage_takes() -> None:
    assert parse_settings({"stage": "a", "tags": ["\u00e9quipe=L\u00fcbeck"]}).tags == ("\u00e9quipe=L\u00fcbeck",)


@pytest.mark.parametrize("name", ["2026.11.29.1", "a--b.c-d"])
def test_a_bucket_may_have_any_name_that_is_not_an_address(name: str) -> None:
    assert parse_settings({"stage": "a", "input": {"bucket": name}}).input.bucket == name


def test_the_longest_of_the_configured_suffixes_is_found() -> None:
    assert InputSettings(suffixes=(".gz", ".JSON.gz", ".json")).suffix_of("a.json.GZ") == ".JSON.gz"


def test_the_error_for_a_missing_file_states_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingsError, match="does not exist: pass your stage's file by --settings"):
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
    with pytest.raises(InvalidSettingsError, match="cannot be read"):
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


def keys(body: Any) -> list[str]:
    with pytest.raises(InvalidSettingsError) as caught:
        parse_settings(body)
    return [caught.value.key, *(error.key for error in caught.value.others)]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ([], ["settings"]),
        ({}, ["stage"]),
        ({"stage": "A", "colour": "red", "batch": [], "peak": 3}, ["colour", "stage", "peak", "batch"]),
        (
            {"stage": "a", "peak": {"hours": ["8-20", "08:00-09:00", "09:00-25:00"], "days": ["Monday"]}},
            ["peak.hours", "peak.hours", "peak.days"],
        ),
        # Conflicts between values are reported together with the wrong values of other tables.
        (
            {
                "stage": "a",
                "stream": {"trigger_seconds": 0},
                "ledger": {"keep_days": 1},
                "datasets": [{"name": "a", "prefix": "a/"}, {"name": "b", "prefix": "a/"}],
            },
            ["stream.trigger_seconds", "datasets.prefix", "ledger.keep_days"],
        ),
        ({"stage": "a", "price": {"dpu_hour": 10**400}}, ["price.dpu_hour"]),
        ({"stage": "a", "datasets": {}}, ["datasets"]),
        ({"stage": "a", "datasets": []}, ["datasets"]),
        ({"stage": "a", "datasets": [3, {"name": "B"}]}, ["datasets", "datasets.name"]),
        (
            {"stage": "a", "datasets": [{"name": "b"}, {"name": "c"}], "quota": {"dpus": 1}},
            ["datasets.prefix", "quota.dpus"],
        ),
        (
            {"stage": "a", "datasets": [{"name": "b", "urgent": {"tags": ["x"], "min_bytes": -1}}], "peak": 3},
            ["datasets.urgent.tags", "datasets.urgent.min_bytes", "peak"],
        ),
        ({"stage": "a", "datasets": [{"name": "b", "urgent": 3}], "peak": 3}, ["datasets.urgent", "peak"]),
        ({"stage": "a", "stream": {"jobs": 3}, "quota": {"job_runs": 3}}, ["quota.job_runs"]),
        # Values are not compared with an invalid one.
        ({"stage": "a", "batch": {"workers": 1}, "quota": {"dpus": 9}}, ["batch.workers"]),
        (
            {"stage": "a", "batch": {"run_timeout_minutes": 0}, "convert": {"max_core_minutes": 241}},
            ["batch.run_timeout_minutes"],
        ),
    ],
)
def test_all_errors_are_reported_once_and_in_the_order_of_the_keys(body: Any, found: list[str]) -> None:
    unchanged = repr(body)
    assert keys(body) == found
    assert repr(body) == unchanged


@pytest.mark.parametrize(
    ("earlier", "later", "shadowed"),
    [
        (("a", "x/"), ("b", "x/y/"), True),
        (("a", "x/"), ("b", "x/"), True),
        (("a", ""), ("{folder}", ""), True),
        (("a", "x/y/"), ("b", "x/"), False),
        (("a", "x/"), ("b", "y/"), False),
        (("{folder}", ""), ("b", "orders/"), True),
        (("{folder}", ""), ("b", "orders"), False),
        (("{folder}", ""), ("b", ""), False),
        (("{folder}", "x/"), ("{folder}", "x/y"), True),
        (("{folder}", "x/y"), ("{folder}", "x/"), False),
    ],
)
def test_a_rule_that_never_matches_is_refused(earlier: tuple[str, str], later: tuple[str, str], shadowed: bool) -> None:
    body = {"stage": "dev", "datasets": [{"name": name, "prefix": prefix} for name, prefix in (earlier, later)]}
    if not shadowed:
        assert len(parse_settings(body).datasets) == 2
        return
    with pytest.raises(InvalidSettingsError, match="never matches") as caught:
        parse_settings(body)
    assert (caught.value.key, caught.value.value) == ("datasets.prefix", later[1])


def test_thousands_of_rules_are_not_compared_pair_by_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    takes_all = DatasetRule.takes_all_keys_of

    def compare(earlier: DatasetRule, later: DatasetRule) -> bool:
        compared.append(later)
        return takes_all(earlier, later)

    monkeypatch.setattr(DatasetRule, "takes_all_keys_of", compare)
    # Given rules that each take keys of the next rule, and of no other
    rules = [{"name": "d" if n % 2 else "{folder}", "prefix": f"team/{n // 2:04}{'-' * (n % 2)}"} for n in range(4000)]
    # When, Then
    parse_settings({"stage": "dev", "datasets": rules})
    assert len(compared) == 2000


@pytest.mark.parametrize(
    ("changes", "runs"),
    [
        ({}, 49),
        ({"verify": {"share": 0.01}}, 48),
        ({"batch": {"max_runs": 7}}, 7),
        ({"quota": {"dpus": 1000, "job_runs": 200}}, 50),
        ({"quota": {"dpus": 1000, "job_runs": 200}, "batch": {"max_runs": 500}}, 99),
        ({"quota": {"job_runs": 10}}, 9),
    ],
    ids=["default", "verification", "max_runs", "both", "all", "few runs"],
)
def test_a_night_takes_what_the_stream_leaves(changes: dict[str, Any], runs: int) -> None:
    settings = parse_settings({"stage": "dev", **changes})
    assert settings.max_overnight_runs == runs
    quota = settings.quota
    assert settings.max_batch_runs * settings.run_dpus + settings.stream_dpus <= quota.dpus
    assert settings.max_batch_runs + 1 <= quota.job_runs


ON_EMR = {"engine": "emr-serverless"}
LAUNCH = EmrLaunch("00app", "arn", "s3://code/main.py", "--a 1 --b 2", "--conf x=y", 1440, "/logs")


def test_the_stream_takes_vcpus_and_no_dpus() -> None:
    # Given two streaming jobs, each with a driver of 2 vCPU and 8 GB and up to 9 executors of 8 vCPU and 32 GB
    settings = parse_settings({"stage": "dev", "stream": {**ON_EMR, "worker_type": "G.2X", "jobs": 2}})
    # Then the night has all of Glue's quota
    assert (settings.stream_dpus, len(settings.glue_shards), settings.max_overnight_runs) == (0, 0, 50)
    assert (settings.stream.jobs, settings.stream_vcpus, settings.uses_emr) == (2, 2 * 74, True)
    # And a stage without any run on Glue needs none of it
    body = {"stage": "dev", "stream": ON_EMR, "batch": {"engines": ["emr-serverless"]}, "quota": {"dpus": 1}}
    assert parse_settings(body).max_batch_runs == 1
    with pytest.raises(InvalidSettingsError, match=r"quota\.dpus = 1"):
        parse_settings({**body, "verify": {"share": 0.1}})
    assert settings.stream.units.gb == 8 + 9 * 32
    # And the cores that convert are the executors' cores
    assert settings.stream.cores == 72
    assert settings.stream.parallel_seconds == 72 * 27
    # And on Glue nothing has changed
    glue = parse_settings({"stage": "dev", "stream": {"jobs": 2}})
    assert (glue.stream_dpus, len(glue.glue_shards), glue.stream_vcpus, glue.uses_emr) == (20, 2, 0, False)


def test_how_a_run_is_started_is_read_back() -> None:
    assert EmrLaunch.from_text(LAUNCH.to_text()) == LAUNCH
    for text in ("", "{}", "[]", '{"application": "a", "more": 1}'):
        with pytest.raises(InvalidInputError, match=r"launch of EMR .* cannot be read .* deploy the stack again"):
            EmrLaunch.from_text(text)


@pytest.mark.parametrize(("shard", "more"), [("1", []), ("clicks", ["--stream_shard", "clicks"])])
def test_the_request_for_a_run(shard: str, more: list[str]) -> None:
    request = LAUNCH.request(shard, "job", "token")
    assert request["jobDriver"]["sparkSubmit"]["entryPointArguments"] == ["--a", "1", "--b", "2", *more]
    monitoring = request["configurationOverrides"]["monitoringConfiguration"]
    assert monitoring["managedPersistenceMonitoringConfiguration"] == {"enabled": True}
    assert "s3MonitoringConfiguration" not in monitoring


STREAM = "arn:aws:kinesis:eu-central-1:111122223333:stream/clicks"
CLUSTER = "arn:aws:kafka:eu-central-1:111122223333:cluster/shop/1234abcd-12ab-34cd-56ef-1234567890ab-s1"
CLICKS = {"name": "clicks", "dataset": "clicks", "kinesis_stream": STREAM}
TOPIC = {"name": "clicks", "dataset": "clicks", "msk_cluster": CLUSTER, "msk_topic": "clicks.v1"}


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ({"records": [{**CLICKS, "dataset": "{folder}"}]}, "records.dataset"),
        ({"records": [{**CLICKS, "kinesis_stream": ""}]}, "records.kinesis_stream"),
        ({"records": [{**CLICKS, "msk_cluster": CLUSTER, "msk_topic": "a"}]}, "records.kinesis_stream"),
        ({"records": [{**CLICKS, "msk_topic": "a"}]}, "records.msk_topic"),
        ({"records": [{**TOPIC, "kinesis_kms_key": KEY}]}, "records.kinesis_kms_key"),
        ({"records": [{**TOPIC, "msk_cluster": "arn:aws:kafka:eu-central-1:1:cluster/shop"}]}, "records.msk_cluster"),
        ({"records": [{**CLICKS, "kinesis_stream": STREAM.replace(":aws:", ":aws-cn:")}]}, "records.kinesis_stream"),
        ({"records": [{**CLICKS, "kinesis_kms_key": ABROAD}]}, "records.kinesis_kms_key"),
        ({"records": [{**TOPIC, "msk_topic": ""}]}, "records.msk_topic"),
        # The rules would not take the keys.
        ({"datasets": [{"name": "orders", "prefix": "orders/"}]}, "records.dataset"),
        ({"datasets": [{"name": "orders"}]}, "records.dataset"),
        # Firehose reads !{ as the start of an expression.
        ({"datasets": [{"name": "clicks", "prefix": "a!{b/"}]}, "records.dataset"),
        ({"datasets": [{"name": "clicks", "prefix": FAILED_RECORDS}]}, "datasets.prefix"),
        ({"input": {"suffixes": [".ndjson", ".gz.ndjson"]}}, "input.suffixes"),
        ({"stage": "x" * 43, "records": [{**CLICKS, "name": "n" * (MAX_NAMES - 42)}]}, "records.name"),
        # Two delivery streams cannot have one name.
        ({"records": [CLICKS, TOPIC]}, "records.name"),
        # The rule takes only undelivered records.
        ({"datasets": [{"name": "failed", "prefix": f"{FAILED_RECORDS}clicks/"}]}, "datasets.prefix"),
    ],
)
def test_a_wrong_value_of_records_is_reported_with_its_key(body: dict[str, Any], key: str) -> None:
    assert keys({"stage": "prod", "records": [CLICKS], **body})[0] == key


def test_the_longest_name_fits_firehose() -> None:
    stage, name = "s" * 30, "n" * (MAX_NAMES - 30)
    longest = parse_settings({"stage": stage, "records": [{**CLICKS, "name": name}]})
    # CreateDeliveryStream, DeliveryStreamName
    assert len(f"{stack_name(longest.stage)}-{name}") == 64


@pytest.mark.parametrize(
    ("rules", "folder"),
    [
        ([("{folder}", "")], "clicks/records/web/"),
        ([("{folder}", "landing/")], "landing/clicks/records/web/"),
        ([("clicks", "web-")], "web-records/web/"),
        ([("clicks", "")], "records/web/"),
        # An earlier rule takes the keys of the first rule that names the dataset.
        ([("orders", "a/records/"), ("clicks", "a/"), ("clicks", "b/")], "b/records/web/"),
        ([("orders", "clicks/r"), ("{folder}", "")], None),
    ],
)
def test_the_folder_is_one_that_the_rules_give_to_the_dataset(rules: list[tuple[str, str]], folder: str | None) -> None:
    record = RecordsRule("web", "clicks", STREAM)
    assert record.folder([DatasetRule(*rule) for rule in rules]) == folder
