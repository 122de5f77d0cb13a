"""Every variant of the template is valid for cfn-lint and within limits that AWS checks only at deployment; quotas."""

import json
import re
import subprocess
import sys
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from infra.allow import key_pattern
from infra.functions import SPECS
from infra.names import stack_name
from infra.quotas import OTHER_FUNCTIONS, needed_quotas
from infra.synth import synth
from lake.errors import InvalidSettingsError
from lake.settings import (
    BatchSettings,
    DatasetRule,
    DatasetUrgentSettings,
    EmrSettings,
    EncryptionSettings,
    InputSettings,
    ProtectionSettings,
    QuotaSettings,
    RecordsRule,
    Settings,
    SparkSettings,
    StreamSettings,
    VerifySettings,
    parse_settings,
)
from lake.shards import MAX_SHARDS
from tests.records import RECORDS
from tests.unit.infra.conftest import KEY, REGION, Assembly

LONGEST_STAGE = "s" * 43
FOREIGN_PREFIX = "\u0437\u0430\u043a\u0430\u0437\u044b/\u00e9t\u00e9-\U0001f69a* {a}] (b/"
"""Characters that a key may have: Cyrillic, of Latin-1, above 16 bits, a wildcard of IAM, and brackets."""
URGENT = DatasetUrgentSettings(tags=("priority=high",), metadata=("priority=high",))
VARIANTS = {
    "default": Settings(stage="dev"),
    "everything on EMR Serverless": Settings(
        stage="s" * 41,  # As long as the names of RECORDS allow.
        input=InputSettings(bucket="landing-zone-1", kms_key=KEY),
        stream=StreamSettings(engine="emr-serverless", jobs=MAX_SHARDS),
        batch=BatchSettings(engines=("glue-flex", "glue", "emr-serverless")),
        verify=VerifySettings(share=0.01),
        records=RECORDS,
        protection=ProtectionSettings(versions=True, deletion=True),
        spark=SparkSettings(ui_logs=True),
        encryption=EncryptionSettings(kms_key=KEY, bootstrap_key=KEY),
        tags=tuple(f"team-{number}=data" for number in range(40)),
    ),
    "every shard on Glue": Settings(
        stage=LONGEST_STAGE,
        datasets=(DatasetRule("orders", FOREIGN_PREFIX, urgent=URGENT), DatasetRule("{folder}")),
        records=(RecordsRule("orders", "orders", "arn:aws:kinesis:eu-central-1:111122223333:stream/orders"),),
        stream=StreamSettings(jobs=MAX_SHARDS),
        quota=QuotaSettings(dpus=2000, job_runs=200),
    ),
    "as many rules as are accepted, of short and of long prefixes": Settings(
        stage="many",
        datasets=tuple(
            DatasetRule(f"dataset_{number}", f"{number:0{500 if number < 15 else 9}}/", urgent=URGENT)
            for number in range(105)
        ),
    ),
}
MAX_INLINE, MAX_MANAGED, MAX_MANAGED_OF_ROLE = 10_240, 6_144, 10
"""Characters of all inline policies of a role, of a managed policy; managed policies of a role (IAM User Guide)."""
MAX_ENVIRONMENT = 4_096
"""Bytes of all names and values of a function's environment (AWS Lambda quotas)."""
MAX_DEFINITION = 1 << 20
"""Bytes of a state machine's definition (AWS Step Functions quotas)."""
ACCEPTED_BY_LINT = {
    # The schema demands a number; Step Functions takes a JSONata expression
    # (https://docs.aws.amazon.com/step-functions/latest/dg/state-map-distributed.html).
    "E3601",
    # CDK's own: DependsOn that a reference already implies.
    "W3005",
}


def test_rules_for_which_a_role_has_no_room_are_refused() -> None:
    rules = [{"name": f"d{n}", "prefix": f"{'p' * 100}{n:04}/", "urgent": {"tags": ["a=b"]}} for n in range(200)]
    with pytest.raises(InvalidSettingsError, match="datasets"):
        parse_settings({"stage": "dev", "datasets": rules})


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    settings = VARIANTS[request.param]
    return Assembly(synth(settings, tmp_path_factory.mktemp("variant")), settings, stack_name(settings.stage))


def size(document: Any) -> int:
    """Characters of a policy as IAM counts them: without white space between its tokens."""
    return len(json.dumps(document, separators=(",", ":")))


def test_no_role_has_more_policies_than_iam_accepts(variant: Assembly) -> None:
    managed = variant.resources("AWS::IAM::ManagedPolicy")
    inline: Counter[str] = Counter()
    attached: Counter[str] = Counter()
    for name, role in variant.resources("AWS::IAM::Role").items():
        inline[variant.name(name)] += sum(size(item["PolicyDocument"]) for item in role.get("Policies", []))
        attached[variant.name(name)] += len(role.get("ManagedPolicyArns", []))
    for policy in variant.resources("AWS::IAM::Policy").values():
        inline.update(dict.fromkeys(policy["Roles"], size(policy["PolicyDocument"])))
    for policy in managed.values():
        attached.update(policy["Roles"])
    sizes = {name: size(policy["PolicyDocument"]) for name, policy in managed.items()}
    assert inline.keys() == attached.keys(), "a policy belongs to a role that is not of the template"
    assert {name: number for name, number in inline.items() if number > MAX_INLINE} == {}
    assert {name: number for name, number in sizes.items() if number > MAX_MANAGED} == {}
    assert {name: number for name, number in attached.items() if number > MAX_MANAGED_OF_ROLE} == {}


def test_policies_have_only_characters_that_iam_accepts(variant: Assembly) -> None:
    # Given IAM's rules for a policy (API Reference, PutRolePolicy)
    model = botocore.session.get_session().get_service_model("iam")
    pattern = model.shape_for("policyDocumentType").metadata["pattern"]
    policies = [*variant.resources("AWS::IAM::Policy").items(), *variant.resources("AWS::IAM::ManagedPolicy").items()]
    refused = {
        name
        for name, policy in policies
        if not re.fullmatch(pattern, json.dumps(policy["PolicyDocument"], ensure_ascii=False))
    }
    assert policies
    assert refused == set()


def test_keys_under_a_prefix_with_such_characters_are_allowed() -> None:
    pattern = key_pattern(FOREIGN_PREFIX)
    assert fnmatchcase(f"{FOREIGN_PREFIX}2026/11/20.ndjson", pattern)
    assert not fnmatchcase("orders/2026/11/20.ndjson", pattern)
    # And only a character that a policy cannot contain literally becomes a wildcard
    assert key_pattern("\u00e9t\u00e9/$a*?/") == "\u00e9t\u00e9/?a??/*"


def test_environments_and_definitions_are_small_enough(variant: Assembly) -> None:
    for name, function in variant.resources("AWS::Lambda::Function").items():
        variables = function.get("Environment", {}).get("Variables", {})
        assert sum(len(f"{key}{value}".encode()) for key, value in variables.items()) <= MAX_ENVIRONMENT, name
    for name, machine in variant.resources("AWS::StepFunctions::StateMachine").items():
        substituted = sum(len(str(value)) for value in machine["DefinitionSubstitutions"].values())
        assert len(machine["DefinitionString"].encode()) + 20 * substituted <= MAX_DEFINITION, name


def test_cfn_lint_finds_nothing(variant: Assembly) -> None:
    template = next(variant.folder.glob("*.template.json"))
    # Indentation is a third of the MB that a template may have, which tags and [[records]] fill.
    assert "\n" not in template.read_text()
    options = ["--regions", REGION, "--ignore-checks", *sorted(ACCEPTED_BY_LINT), "--format", "parseable"]
    command = [str(Path(sys.executable).with_name("cfn-lint")), *options, "--template", str(template)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


ON_EMR = StreamSettings(jobs=2, engine="emr-serverless")


@pytest.mark.parametrize(
    ("fields", "needed"),
    [
        # 20 runs of 10 workers of 2 DPUs, and a streaming job of 5 workers of 1 DPU.
        ({}, [20, 21, 405]),
        # A stage with an Iceberg table has one more function.
        ({"datasets": (DatasetRule("{folder}", table="iceberg"),)}, [21, 21, 405]),
        # A scheduled verification is one more run of the batch job.
        ({"verify": VerifySettings(share=0.01)}, [20, 22, 425]),
        # Each further streaming job is one more run of 5 workers.
        ({"stream": StreamSettings(max_workers=5, worker_type="G.1X", jobs=3)}, [20, 23, 415]),
        # On the other engine it uses no run and no DPU of Glue.
        ({"stream": ON_EMR}, [20, 20, 400, 76]),
        (
            {"stream": ON_EMR, "batch": BatchSettings(engines=("emr-serverless",)), "emr": EmrSettings(max_vcpus=64)},
            140,
        ),
    ],
)
def test_the_needs_follow_the_settings(fields: dict[str, Any], needed: object) -> None:
    batch = BatchSettings(max_runs=20, workers=10, worker_type="G.2X")
    stream = StreamSettings(max_workers=5, worker_type="G.1X")
    found = [quota.needed for quota in needed_quotas(Settings("prod", **{"batch": batch, "stream": stream, **fields}))]
    assert needed in (found, found[-1])
    assert len(SPECS) - 1 == OTHER_FUNCTIONS + 1
