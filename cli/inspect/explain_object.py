"""From an object of lake or quarantine back to the files that it was made from."""

from __future__ import annotations

import json
from typing import Any

from cli.deployed_stack import DeployedStack
from cli.documents import ExplainedInput, ObjectExplanation
from lake.layout import is_own_key, parse_generation, result_key
from lake.s3_uri import S3Uri


def explain_object(stack: DeployedStack, name: S3Uri, limit: int) -> ObjectExplanation | None:
    """The manifest of an object, and its files with their counts; None: its name is not one that a manifest makes, or
    the ledger does not know that manifest.

    The rows of all files of a manifest are spread over its objects; the column ``_source`` says which row is whose.
    Raises botocore's errors.
    """
    parsed = parse_generation(name.key)
    row = stack.ledger.manifests.get(parsed[0]) if parsed else None
    if parsed is None or row is None or not is_own_key(name.key, row.partition, row.id, parsed[1]):
        return None
    generation, published = parsed[1], row.published
    result = _read_result(stack, row.id, generation)
    is_current = published is not None and generation == published.generation
    if published is not None and generation < published.generation:
        # A generation keeps objects of an earlier one if input files were gone when it was converted.
        current = _read_result(stack, row.id, published.generation) or {"files": [], "quarantine": []}
        is_current = name.key in {item["key"] for item in (*current["files"], *current["quarantine"])}
    sources = result["sources"] if result else []
    of_lake = name.bucket == stack.resources.lake_bucket
    objects = (result["files"] if of_lake else result["quarantine"]) if result else []
    own = next((item for item in objects if item["key"] == name.key), None)
    shown = sources if of_lake else [item for item in sources if item["failed"] or sum(item["rejects"].values())]
    return ObjectExplanation(
        kind="lake" if of_lake else "quarantine",
        uri=str(name),
        manifest=row.id,
        partition=str(row.partition),
        generation=generation,
        is_current=is_current,
        current_generation=published.generation if published else None,
        published_at=result["published_at"] if result else None,
        is_published=own is not None,
        rows=own["rows"] if own else None,
        size=own["size"] if own else None,
        inputs=tuple(_input(item) for item in shown[:limit]),
        omitted_inputs=max(len(shown) - limit, 0),
    )


def _input(source: dict[str, Any]) -> ExplainedInput:
    rejects = {reason: lines for reason, lines in source["rejects"].items() if lines}
    return ExplainedInput(source["uri"], source["version"], source["size"], source["rows"], rejects, source["failed"])


def _read_result(stack: DeployedStack, manifest: str, generation: int) -> dict[str, Any] | None:
    key = result_key(manifest, generation)
    try:
        body = stack.s3.get_object(Bucket=stack.resources.control_bucket, Key=key)["Body"].read()
    except stack.s3.exceptions.NoSuchKey:
        return None
    result: dict[str, Any] = json.loads(body)
    return result
