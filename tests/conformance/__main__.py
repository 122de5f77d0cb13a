"""Asks every second implementation and writes docs/conformance.md: ``python -m tests.conformance``.

Exit code 1: one of them has an unknown difference, or agrees although a difference is known.
"""

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scripts.write_reference import wrapped
from tests.conformance import tools
from tests.conformance.expressions import reference_jsonata
from tests.conformance.protocol import dynamodb_local, minio_server, old_models
from tests.conformance.readers import parquet_readers

PAGE = tools.REPOSITORY / "docs" / "conformance.md"
HEAD = """\
# Second opinions

<!-- Written by `make conformance`. -->

The tests use one local cloud and one set of fakes. `make conformance` asks other implementations the same questions.
They come from package registries, each by version and hash (`tests/conformance`), and are kept in `.cache`: the first
run needs Maven and Go, downloads about 400 MB and compiles for some minutes.

| asked | question | cases | agreed |
|---|---|---:|---:|
"""


def main() -> int:
    tools.dynamodb_local(), tools.go_programs(), tools.older_python()
    with tempfile.TemporaryDirectory() as workspace:
        folder = Path(workspace)
        (folder / "minio").mkdir()
        # DynamoDB Local takes longest: the others run at the same time.
        with ThreadPoolExecutor(1) as pool:
            objects = pool.submit(minio_server, folder / "minio")
            ledger = dynamodb_local(folder)
            opinions = [ledger, old_models(folder), reference_jsonata(), parquet_readers(folder), objects.result()]
    PAGE.write_text(_page(opinions), encoding="utf-8")
    surprises = [surprise for opinion in opinions for surprise in opinion.surprises()]
    for opinion in opinions:
        print(f"{opinion.name}: {opinion.agreed:,} of {opinion.questions:,}")
    print(*surprises, sep="\n")
    return 1 if surprises else 0


def _page(opinions: list[tools.Opinion]) -> str:
    rows = "".join(f"| {one.name} | {one.topic} | {one.questions:,} | {one.agreed:,} |\n" for one in opinions)
    parts = []
    for one in opinions:
        if one.different:
            reasons: dict[str, list[str]] = {}
            for question in one.different:
                name = f"`{question.partition('[')[0]}`"
                names = reasons.setdefault(one.known.get(question, "not understood yet"), [])
                if name not in names:
                    names.append(name)
            lines = [
                line for reason, names in reasons.items() for line in wrapped(f"- {reason}: {', '.join(names)}", "  ")
            ]
            parts.append(f"\n## What {one.name} does otherwise\n\n" + "\n".join(lines) + "\n")
    return HEAD + rows + "".join(parts)


if __name__ == "__main__":
    sys.exit(main())
