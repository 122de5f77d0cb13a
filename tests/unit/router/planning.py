"""Helpers for the tests of plan: partitions, a plan of a deployment, and what it planned."""

import json
from collections import Counter
from typing import Any

from lake.manifest import Lane, Partition
from lake.manifest_documents import read_manifest
from router.ownership.owner import RoutedArrival
from router.ownership.take import take_ownership
from router.plan.handler import plan
from tests.unit.lake.world import PARTITION, file_of
from tests.unit.router.conftest import Deployment

HOURS = [Partition(dataset, "2026-11-20", hour) for dataset in ("clicks", "orders") for hour in (8, 9)]


def collected(
    deployment: Deployment, name: str, partition: Partition = PARTITION, *others: tuple[str, Partition]
) -> str:
    """Put files into the collection of their hour; return the id of their part."""
    routed = [
        RoutedArrival(file_of(f"{place.dataset}/{file}"), place, Lane.BATCH, "test")
        for file, place in ((name, partition), *others)
    ]
    (part,) = take_ownership(deployment.services, routed, {}).parts
    return part.id


def plan_overnight(deployment: Deployment, **fields: Any) -> dict[str, Any]:
    return plan({"execution": "overnight", **fields}, deployment.services)


def document(deployment: Deployment, uri: str) -> Any:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return json.loads(deployment.raw_s3.get_object(Bucket=bucket, Key=key)["Body"].read())


def planned(deployment: Deployment, answer: dict[str, Any]) -> list[str]:
    """The ids of the manifests of all runs, read as the Map and its jobs read them."""
    index = document(deployment, "s3://{bucket}/{key}".format(**answer["index"]))
    return [manifest for item in index for manifest in document(deployment, item["run"])["manifests"]]


def files(deployment: Deployment, manifests: list[str]) -> Counter[str]:
    return Counter(
        file.key
        for manifest in manifests
        for file in read_manifest(deployment.raw_s3, "control", deployment.row(manifest), ("input",)).files
    )
