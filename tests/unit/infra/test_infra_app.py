"""The CDK app reads the right settings file; invalid settings end it with one sentence."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from infra.synth import CHECKOUT, main, settings_file


def test_the_stage_names_the_settings_file() -> None:
    assert settings_file({}) == CHECKOUT / "settings" / "dev.toml"
    assert settings_file({"stage": "prod"}) == CHECKOUT / "settings" / "prod.toml"
    assert settings_file({"stage": "prod", "settings": "mine.toml"}) == Path("mine.toml")


STREAM = "arn:aws:kinesis:eu-central-1:111122223333:stream/s"
RECORDS = [f'[[records]]\nname = "r{n}"\ndataset = "clicks"\nkinesis_stream = "{STREAM}{n}"\n' for n in range(80)]
"""More delivery streams than a stack has resources for."""


@pytest.mark.parametrize(
    ("text", "context", "message"),
    [
        ('stage = "dev"\n[batch]\nmax_runs = 0', {}, "batch.max_runs = 0 is wrong"),
        # A copy of another stage's file would change the stack of that stage
        ('stage = "dev"', {"stage": "prod"}, "stage = 'dev' is wrong: expected 'prod'"),
        ('stage = "dev"\n' + "".join(RECORDS), {}, "maximum of 500"),
    ],
    ids=["value", "stage", "resources"],
)
def test_what_the_settings_or_cdk_refuse_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    context: dict[str, str],
    message: str,
) -> None:
    # Given a settings file from which no stack can be built.
    (tmp_path / "wrong.toml").write_text(text)
    context = {**context, "settings": str(tmp_path / "wrong.toml"), "local": "true"}
    monkeypatch.setenv("CDK_CONTEXT_JSON", json.dumps(context))
    monkeypatch.setenv("CDK_OUTDIR", str(tmp_path / "out"))
    # When the app runs.
    code = main()
    # Then it fails, and states the reason in one line.
    printed = capsys.readouterr().err
    assert code == 1
    assert len(printed.splitlines()) == 1
    assert message in printed


def test_cdk_needs_no_node_of_the_machine(tmp_path: Path) -> None:
    # Given a machine without Node
    environment = {name: value for name, value in os.environ.items() if name != "JSII_NODE"} | {"PATH": str(tmp_path)}
    # When a program imports a construct before it synthesizes anything, then CDK runs on the bundled Node
    subprocess.run([sys.executable, "-c", "import infra.jobs"], cwd=CHECKOUT, env=environment, check=True)


def test_a_folder_that_cdk_may_not_write_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    variables = {
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(tmp_path / "file" / "cache"),
        "CDK_CONTEXT_JSON": json.dumps({"local": "true"}),
        "CDK_OUTDIR": str(tmp_path / "out"),
    }
    command = [sys.executable, "-m", "infra.synth"]
    environment = {**os.environ, **variables}
    ended = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert "package cache" in ended.stderr
