"""The README's commands work as it describes."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tests.oracle.lake_proof import prove

CHECKOUT = Path(__file__).resolve().parents[2]
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")


def test_the_first_screen_has_two_commands() -> None:
    assert re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL) == ["make demo", "make test"]


def test_ci_runs_the_test_command() -> None:
    assert (CHECKOUT / ".ci/run").read_text(encoding="utf-8").splitlines()[-1] == "exec make test"


def test_every_mentioned_target_and_document_exists() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", README)) <= targets
    documents = re.findall(r"\]\((docs/[^)#]+)\)", README)
    assert documents
    assert [name for name in documents if not (CHECKOUT / name).is_file()] == []


def test_make_help_lists_every_target() -> None:
    text = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    phony = set(" ".join(re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)).split())
    command = ["make", "--no-print-directory", "help"]
    answer = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert {line.split()[1] for line in answer.stdout.splitlines()} == phony


def test_make_demo_proves_that_nothing_was_lost(tmp_path: Path) -> None:
    # When the README's first command runs, with its output in the test's folder.
    answer = subprocess.run(
        ["make", "demo", f"OUTPUT={tmp_path / 'out'}"], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    # Then it succeeds, shows every stage, and the files of its summary exist.
    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr[-3000:]
    for stage in ("stream lane", "overnight", "backfill", "Nothing was lost or changed"):
        assert stage in answer.stdout
    summary = json.loads((tmp_path / "out/summary.json").read_text(encoding="utf-8"))
    assert summary["ok"]
    assert {item["lane"] for item in summary["files"]} == {"stream", "batch"}
    assert all(item["state"] == "DONE" for item in summary["files"])
    rows = sum(item["rows"] for item in summary["files"])
    assert f"<b>{rows:,}</b><span>rows published" in (tmp_path / "out/report.html").read_text(encoding="utf-8")
    # And a count that shares no code with the product finds every line
    inputs = [(Path(item["file"]), item["uri"], item["dataset"]) for item in summary["files"]]
    assert prove(inputs, tmp_path / "out").differences == []
    assert list((tmp_path / "out/lake").glob("orders/date=*/hour=*/*.parquet"))
    assert list((tmp_path / "out/quarantine").glob("orders/date=*/hour=*/*.jsonl"))
