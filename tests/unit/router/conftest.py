from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any

import pytest

from lake.ledger import DatasetMeasurement, Ledger, ManifestRow, SpeedSample, State
from lake.ledger.costs import MIN_SAMPLE_BYTES
from lake.manifest import Lane, ObjectVersion
from lake.manifest_documents import read_manifest
from lake.settings import parse_settings
from router.divide import divide
from router.services import Services
from router.stream.handler import stream_control
from router.telemetry import Metric, metrics
from tests.unit.lake.world import PARTITION, World, new_world
from tests.unit.router.emr import LAUNCH, ON_EMR, FakeEmr
from tests.unit.router.events import s3_record
from tests.unit.router.glue import FakeGlue

SETTINGS = {"stage": "test", "time_zone": "Europe/Berlin"}


@dataclass
class Deployment(World):
    """A world with a control plane."""

    glue: Any = None
    services: Services = None  # type: ignore[assignment]
    patch: pytest.MonkeyPatch = field(default_factory=pytest.MonkeyPatch)
    """What a test replaces in the product or in the world; it is undone when the test ends."""

    def divide(self) -> list[str]:
        """Divide every collection, including those of the current hour; return the ids of the manifests."""
        ledger = Ledger.over(self.dynamodb, self.services.resources.ledger_table)
        services = replace(self.services, s3=self.raw_s3, ledger=ledger)
        return [name for row in list(ledger.collections.open()) for name in divide(services, row.id)]

    def waiting(self) -> list[ManifestRow]:
        """The QUEUED manifests of the batch lane, after every collection is divided."""
        self.divide()
        return list(self.ledger.manifests.open(Lane.BATCH, State.QUEUED))

    def waiting_files(self) -> list[ObjectVersion]:
        """The files of the given manifests, sorted."""
        manifests = (read_manifest(self.raw_s3, "control", row, ("input", "control")) for row in self.waiting())
        return sorted(file for manifest in manifests for file in manifest.files)

    def put(self, *keys: str) -> datetime:
        """Put files into the input bucket; return the time at which S3 changed the last one."""
        for key in keys:
            self.raw_s3.put_object(Bucket="input", Key=key, Body=b"{}\n")
        modified: datetime = self.raw_s3.head_object(Bucket="input", Key=keys[-1])["LastModified"]
        return modified

    def announced(self, key: str, body: bytes = b"{}\n", **options: Any) -> dict[str, Any]:
        """Put a file into the input bucket; return the record of its event."""
        answer = self.raw_s3.put_object(Bucket="input", Key=key, Body=body, **options)
        return s3_record(key, eTag=answer["ETag"].strip('"'), versionId=answer.get("VersionId"), size=len(body))

    def keep_versions(self, bucket: str = "input", status: Any = "Enabled") -> None:
        self.raw_s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})

    def damage(self, row: ManifestRow) -> None:
        """Remove an attribute from the row that is always written."""
        key = {"pk": f"manifest#{row.id}", "sk": "manifest"}
        self.dynamodb.update_item(TableName="ledger", Key=key, UpdateExpression="REMOVE manifest_sha256")

    def configure(self, **settings: Any) -> None:
        """Replace some of the default settings."""
        self.services = replace(self.services, settings=parse_settings({**SETTINGS, **settings}))


def act(deployment: Deployment, action: str, shards: Mapping[str, Sequence[str]] | None = None) -> dict[str, Any]:
    """Start or watch the streaming runs of all shards or of the given ones, or stop or kill them as a person does."""
    event = {"action": action, "shards": shards, "manual": action in ("stop", "kill")}
    return stream_control(event, deployment.services)


def measure_speed(deployment: Deployment, bytes_per_second: float) -> None:
    """The smallest conversion that counts as a sample of the dataset's speed: bytes that a core converts per second."""
    milliseconds = int(MIN_SAMPLE_BYTES * 1000 / bytes_per_second)
    measurement = DatasetMeasurement(1, SpeedSample(MIN_SAMPLE_BYTES, milliseconds))
    deployment.ledger.datasets.add_measurement(PARTITION.dataset, measurement)


def recorded(action: Callable[[], object], *names: Metric) -> list[float]:
    """The values of the given metrics; an action records each of them once."""
    metrics.clear_metrics()
    action()
    return [value for (value,) in (metrics.metric_set[name]["Value"] for name in names)]


@pytest.fixture(autouse=True)
def _metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "namespace", "hybrid-router")
    metrics.clear_metrics()


@pytest.fixture
def emr(deployment: Deployment) -> FakeEmr:
    """Move the deployment's streaming jobs to EMR Serverless."""
    emr = FakeEmr()
    deployment.configure(stream=ON_EMR)
    deployment.services = replace(deployment.services, engines={"emr-serverless": emr}, stream_launch=LAUNCH)
    return emr


@cache
def _admitted_datasets() -> tuple[Any, ...]:
    """The rows of a ledger that has admitted two datasets."""
    with new_world() as world:
        world.ledger.datasets.admit({"orders": "orders", "clicks": "clicks"}, 1000)
        return tuple(world.dynamodb.scan(TableName=world.resources.ledger_table)["Items"])


@contextmanager
def new_deployment() -> Iterator[Deployment]:
    admitted = _admitted_datasets()
    with new_world() as world, pytest.MonkeyPatch.context() as patch:
        clients = (world.s3, world.raw_s3, world.ledger, world.faults, world.dynamodb)
        glue = FakeGlue()
        deployment = Deployment(*clients, glue=glue, patch=patch)
        deployment.services = Services(
            settings=parse_settings(SETTINGS),
            resources=world.resources,
            ledger=world.ledger,
            s3=world.s3,
            glue=world.faults.wrap(glue),
            clock=deployment.clock,
        )
        # Every test begins with admitted datasets, so it does not count the writes of their admission.
        for row in admitted:
            world.dynamodb.put_item(TableName=world.resources.ledger_table, Item=row)
        yield deployment
