"""convert on real Spark and S3 over HTTP: what goes in comes out, exactly."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.integration.deployment import Deployment


def test_rows_rejects_and_blank_lines_add_up(deployment: Deployment, spark: SparkSession) -> None:
    # Given a plain and a compressed file with a broken line, a blank one and keys that need care
    plain = deployment.put("orders/a.ndjson", b'{"a":1.10,"date":"x"}\n\nbroken\n{"a":null,"B":{"c": 1}}')
    packed = deployment.put("orders/b.json", gzip.compress(b'{"hour":"\\u00e4","a":true}\n[1]\n'))
    manifest = deployment.enqueue([plain, packed])

    # When
    (outcome,) = deployment.convert([manifest], spark)

    # Then
    assert (outcome.state, outcome.rows, outcome.rejects) == ("DONE", 3, 2)
    assert deployment.lake() == [
        {"a": "1.10", "date__": "x"},
        {"__b": '{"c": 1}'},
        {"hour__": "ä", "a": "true"},
    ]
    assert [(record["line"], record["reason"]) for record in deployment.quarantine()] == [
        ("broken", "not JSON"),
        ("[1]", "not an object"),
    ]
    result = deployment.result(manifest)
    assert (result["rows"], result["rejects"], result["blank_lines"], result["failed_files"]) == (3, 2, 1, 0)
    assert result["sources"][0]["first_reject"] == "not JSON at byte 23"
    assert deployment.unfinished_uploads() == []
    dataset = deployment.services.ledger.datasets.get("orders")
    assert dataset is not None
    assert set(dataset.columns) == {"a", "date__", "__b", "hour__"}
