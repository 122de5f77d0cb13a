"""``make count``: the size of the project, compared with its limits."""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from infra.synth import synth
from lake.settings import Settings
from lake.settings.declaration import declared_keys

CHECKOUT = Path(__file__).parents[1]
ENGINE = re.compile(r"\bEngine\b|\bon_emr\b|\bemr[_.-]|\bEMR\b|\bEmr[A-Z]|GLUE_FLEX|emr-serverless")
"""Matches a file that mentions an engine."""


def count() -> dict[str, tuple[int, int | None]]:
    """Return figure -> its value in the files that git tracks, and its limit or None."""
    command = ["git", "ls-files", "--", "*.py", "*.md"]
    tracked = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.splitlines()
    sources = {name: (CHECKOUT / name).read_text(encoding="utf-8") for name in tracked}
    product = {name: text for name, text in sources.items() if name.endswith(".py") and not name.startswith("tests/")}
    tests = [text for name, text in sources.items() if name.endswith(".py") and name not in product]
    pages = [text for name, text in sources.items() if name.endswith(".md")]
    return {
        "lines of product Python": (_lines(product.values()), 38_000),
        "lines of tests": (_lines(tests), 42_000),
        "words of documents": (sum(len(text.split()) for text in pages), 45_000),
        "settings keys": (len(list(declared_keys(Settings))), 90),
        "alarms of a default stage": (_alarms(), 20),
        "product files that mention an engine": (sum(bool(ENGINE.search(text)) for text in product.values()), None),
        "files in router": (_files(product, "router/"), None),
        "files in lake/ledger": (_files(product, "lake/ledger/"), None),
        "| None in product Python": (sum(text.count("| None") for text in product.values()), None),
        "Any in product Python": (sum(len(re.findall(r"\bAny\b", text)) for text in product.values()), None),
    }


def _lines(texts: Iterable[str]) -> int:
    return sum(len(text.splitlines()) for text in texts)


def _files(product: dict[str, str], folder: str) -> int:
    return sum(name.startswith(folder) and not name.endswith("__init__.py") for name in product)


def _alarms() -> int:
    with tempfile.TemporaryDirectory() as folder:
        (template,) = synth(Settings("count"), Path(folder)).glob("*.template.json")
        resources = json.loads(template.read_text(encoding="utf-8"))["Resources"].values()
    return sum(body["Type"] in {"AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"} for body in resources)


def main() -> None:
    for name, (value, limit) in count().items():
        sys.stdout.write(f"{value:>8,}  {name}{f' (at most {limit:,})' if limit else ''}\n")


if __name__ == "__main__":
    main()
