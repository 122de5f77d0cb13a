"""One micro-batch: pointers in, every manifest they name brought to its end."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake.ledger import State
from transform.convert import convert
from transform.outcome import HELD, UNKNOWN, ConversionOutcome, format_outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from pyspark.sql import SparkSession

    from transform.services import Services

PARALLEL_READS = 16
HELD_WAIT_SECONDS = 5.0
"""Interval between two tries to claim a manifest that another run holds."""
ALARM_STATES = frozenset({State.FAILED, State.SUPERSEDED, UNKNOWN})


@dataclass(frozen=True, slots=True)
class Lane:
    """What a micro-batch works with."""

    spark: SparkSession
    services: Services
    run: str
    """Id of this job run."""
    clock: Callable[[], datetime]
    run_is_terminal: Callable[[str], bool]
    wait: Callable[[float], object]
    """Pauses for so many seconds."""
    log: Callable[[str], None]
    """Takes one line for the log."""


def convert_pointers(lane: Lane, pointers: Iterable[str]) -> list[ConversionOutcome]:
    """Convert until every manifest is terminal; only then may the checkpoint go on.

    One Spark job takes ``stream.batch_bytes`` of input; its manifests are published before the next one begins.
    A manifest that another run holds is waited for. A pointer that is no pointer, or names what the ledger does not
    know, is logged and skipped: the ledger decides, the inbox is a hint.
    """
    ids = manifest_ids(pointers, lane.log)
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        rows = list(pool.map(lane.services.ledger.manifests.get, ids))
    sizes = {manifest: 0 if row is None else row.bytes for manifest, row in zip(ids, rows, strict=True)}
    most = lane.services.settings.stream.batch_bytes
    return [outcome for portion in portions(sizes, most) for outcome in _convert(lane, portion)]


def portions(sizes: Mapping[str, int], max_bytes: int) -> list[list[str]]:
    """Manifests in order, cut so that each portion has at most ``max_bytes``, or one manifest. Pure."""
    cut: list[list[str]] = []
    room = 0
    for manifest, size in sizes.items():
        if not cut or size > room:
            cut.append([])
            room = max_bytes
        cut[-1].append(manifest)
        room -= size
    return cut


def _convert(lane: Lane, waiting: list[str]) -> list[ConversionOutcome]:
    done: list[ConversionOutcome] = []
    while waiting:
        outcomes = convert(
            waiting,
            spark=lane.spark,
            services=lane.services,
            run=lane.run,
            clock=lane.clock,
            run_is_terminal=lane.run_is_terminal,
        )
        ended = [outcome for outcome in outcomes if outcome.state != HELD]
        for outcome in ended:
            lane.log(format_with_alarm(outcome))
        done += ended
        waiting = [outcome.manifest for outcome in outcomes if outcome.state == HELD]
        if waiting:
            lane.services.ledger.stream.record_heartbeat(lane.run, lane.clock())
            lane.log(f"waiting for {len(waiting)} manifests that other runs hold")
            lane.wait(HELD_WAIT_SECONDS)
    return done


def manifest_ids(pointers: Iterable[str], log: Callable[[str], None]) -> list[str]:
    """Distinct manifest ids of lines of the inbox, in order."""
    ids: dict[str, None] = {}
    for pointer in pointers:
        try:
            manifest = json.loads(pointer)["manifest"]
        except (ValueError, KeyError, TypeError):
            manifest = None
        if isinstance(manifest, str) and manifest:
            ids[manifest] = None
        else:
            log(f"skipped {pointer[:200]!r}: it is no pointer")
    return list(ids)


def format_with_alarm(outcome: ConversionOutcome) -> str:
    """One line for the log; a filter of the log finds by ALARM the manifests that this lane will not publish."""
    line = format_outcome(outcome)
    return f"ALARM {line}" if outcome.state in ALARM_STATES else line
