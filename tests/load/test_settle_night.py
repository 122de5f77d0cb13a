"""The requests of settle after a night: rows 100 to a request, objects 1,000 to a request, and no document."""

from __future__ import annotations

import math

import pytest

from tests.load.settle_night import PAGE, READ_SECONDS, WRITE_SECONDS, Night, measure_night


@pytest.mark.parametrize("night", [Night(300, 40), Night(2_500, 1), Night(240, 1, datasets=10)], ids=str)
def test_the_requests_follow_the_rows_and_the_objects(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given: answers without latency
    monkeypatch.setattr("tests.load.settle_night.time.sleep", lambda seconds: seconds in (READ_SECONDS, WRITE_SECONDS))
    # When
    measured = measure_night(night)
    # Then
    assert (measured.verdict, measured.done) == ("SUCCEEDED", night.manifests)
    assert measured.requests["BatchGetItem"] == math.ceil(night.manifests / 100)
    partitions = night.datasets * 24
    documents = math.ceil(night.manifests / PAGE) + math.ceil(night.manifests / 500)
    # Of each partition, the last page is not full.
    assert measured.requests["ListObjectsV2"] <= partitions + night.manifests * night.objects / PAGE + documents
    assert measured.requests["GetObject"] == 1
