"""One micro-batch: its pointers, its portions, and the concurrent conversion of portions."""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lake.cut import cut
from lake.errors import TransientError
from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.settings import parse_settings
from streaming_job import micro_batch
from streaming_job.micro_batch import PORTIONS, convert_manifests
from tests.unit.lake.world import PARTITION
from transform.outcome import ConversionOutcome

GIB = 1 << 30
PATIENCE_SECONDS = 60


@pytest.mark.parametrize(
    ("seconds", "files", "expected"),
    [
        ((1, 1, 1), (0, 0, 0), ["abc"]),
        ((2, 2, 9, 1), (0, 0, 0, 0), ["a", "b", "c", "d"]),
        ((0, 3, 0), (0, 0, 0), ["abc"]),
        ((), (), []),
        ((0, 0, 0, 0, 0), (40, 60, 1, 120, 1), ["ab", "c", "d", "e"]),
    ],
)
def test_small_manifests_share_a_portion_a_large_one_has_its_own_and_the_order_stays(
    seconds: tuple[int, ...], files: tuple[int, ...], expected: list[str]
) -> None:
    sizes = dict(zip("abcde", zip(seconds, files, strict=True), strict=False))
    assert ["".join(piece) for piece in cut(sizes, sizes.__getitem__, (3, 100))] == expected


@dataclass
class Conversions:
    """Replaces ``convert``: records which manifests are converted concurrently."""

    together: threading.Barrier | None = None
    failing: str = ""
    running: set[str] = field(default_factory=set)
    most_bytes: int = 0
    begun: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, manifests: list[str], _context: Any) -> list[ConversionOutcome]:
        with self.lock:
            self.running |= set(manifests)
            self.begun += manifests
            self.most_bytes = max(self.most_bytes, len(self.running) * GIB)
        if self.together is not None:
            self.together.wait(PATIENCE_SECONDS)
        with self.lock:
            self.running -= set(manifests)
        if self.failing in manifests:
            raise TransientError("no answer")
        return [ConversionOutcome(manifest, State.DONE) for manifest in manifests]


def row_of(manifest: str, compressed: int) -> ManifestRow:
    return ManifestRow(manifest, State.QUEUED, Lane.STREAM, PARTITION, manifest, GIB, 1, compressed_bytes=compressed)


def context_of(get: Callable[[str], ManifestRow], waits: list[float], **stream: int) -> Any:
    """A run whose ledger answers with ``get``."""
    settings = parse_settings({"stage": "test", "stream": stream})
    services = SimpleNamespace(ledger=SimpleNamespace(manifests=SimpleNamespace(get=get)), settings=settings)
    return SimpleNamespace(services=services, log=lambda _: None, wait=waits.append)


def convert_gibibytes(
    monkeypatch: pytest.MonkeyPatch,
    conversions: Conversions,
    manifests: int,
    *,
    compressed: bool = False,
    **stream: int,
) -> list[ConversionOutcome]:
    """A micro-batch of manifests of 1 GiB each."""
    monkeypatch.setattr(micro_batch, "convert", conversions)
    context = context_of(lambda manifest: row_of(manifest, GIB * compressed), [], **stream)
    return convert_manifests(context, [f"{number:03d}" for number in range(manifests)])


@pytest.mark.parametrize("compressed", [True, False])
def test_the_cores_of_the_largest_cluster_have_work(monkeypatch: pytest.MonkeyPatch, compressed: bool) -> None:
    # Given files that are one task each, of a minute and a half if they are compressed
    conversions = Conversions(threading.Barrier(PORTIONS))
    # When
    convert_gibibytes(monkeypatch, conversions, 160, compressed=compressed, max_workers=11)
    # Then each of the 40 cores has one
    assert conversions.most_bytes == 40 * GIB


@pytest.mark.parametrize(
    ("refusals", "code"), [(3, "ThrottlingException"), (1, "AccessDenied"), (9, "InternalServerError")]
)
def test_a_ledger_that_does_not_answer_for_a_while_does_not_end_a_micro_batch(
    monkeypatch: pytest.MonkeyPatch, refusals: int, code: str
) -> None:
    # Given a ledger that refuses the first reads
    answers, waits = [ClientError({"Error": {"Code": code}}, "GetItem")] * refusals, list[float]()

    def get(manifest: str) -> ManifestRow:
        if answers:
            raise answers.pop()
        return row_of(manifest, 0)

    conversions = Conversions()
    monkeypatch.setattr(micro_batch, "convert", conversions)
    context = context_of(get, waits)
    # When, Then
    with nullcontext() if refusals == 3 else pytest.raises(ClientError, match=code):
        assert len(convert_manifests(context, ["000"])) == 1
    assert len(waits) == (0 if code == "AccessDenied" else 3)


def test_after_an_error_no_other_portion_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    conversions = Conversions(failing="000")
    with pytest.raises(TransientError, match="no answer"):
        convert_gibibytes(monkeypatch, conversions, 400, max_workers=2)
    assert len(conversions.begun) < 400
