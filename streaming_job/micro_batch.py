"""One micro-batch: manifests in, every one of them converted."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import NamedTuple

from lake.errors import TransientError
from lake.ledger import State
from lake.manifest import Lane
from lake.settings.lanes import BATCH_FILES, SECONDS_PER_CORE
from lake.speed import Speeds
from lake.texts import format_count
from streaming_job.inbox import find_row
from transform.convert import convert, repeat_while_passing
from transform.outcome import HELD, ConversionOutcome, format_faults, format_with_alarm
from transform.preflight import check_environment
from transform.task_model import ConversionContext

PARALLEL_READS = 16
PORTIONS = 4
"""Side by side: while one is claimed, planned or published, the tasks of the others use its cores."""
MAX_CONVERSIONS = 64
"""Each has about thirty threads of the driver, and most of them wait."""
HELD_WAIT_SECONDS = 5.0


def convert_manifests(
    context: ConversionContext,
    manifests: Sequence[str],
    *,
    leaves_held: Callable[[], bool] = lambda: False,
    lately: Iterable[str] = (),
    on_open: Callable[[float], object] = lambda _: None,
) -> list[ConversionOutcome]:
    """Convert until every manifest is terminal, waiting or unknown; only then may their pointers be deleted.

    A waiting manifest that is PUBLISHING is finished by the sweep, for a QUEUED one the sweep writes another pointer.
    So one denied object does not hold up the pointers after it.

    Portions of manifests are converted side by side, urgent ones first, then the oldest: one begins when another one is
    published, so that cores which a portion needs no more have work. Together they have at most
    ``StreamSettings.side_by_side_seconds`` of work, or a manifest each. ``leaves_held``: returns whether the run ends:
    then a manifest that another run holds is returned as ``HELD``, for the next run. ``lately``: some that this run has
    converted: where their files can still be read, a denied file is not the whole input. ``on_open``: gets the work of
    the portions that have not ended, in seconds of one core, before the first one begins and after each one. Raises
    ``BlockedRunError``: the environment lets no manifest be converted: the micro-batch is to be repeated;
    ``TransientError``: from ``convert``, or requests for a manifest got no answer: the micro-batch is to be repeated.
    """
    sizes = repeat_while_passing(context, lambda: input_sizes(context, manifests))
    waiting = portions(sizes, portion_limit(side_by_side_limit(context)))
    open_seconds, lock = sum(size.core_seconds for size in sizes.values()), threading.Lock()
    on_open(open_seconds)

    def convert_one(portion: list[str]) -> list[ConversionOutcome]:
        nonlocal open_seconds
        converted = convert_portion(context, portion, leaves_held, lately)
        with lock:
            open_seconds -= size_of(sizes, portion).core_seconds
            on_open(open_seconds)
        return converted

    # After an error no other portion begins, and those that run end first.
    with ThreadPoolExecutor(PORTIONS) as pool:
        running = [pool.submit(convert_one, portion) for portion in waiting]
        try:
            outcomes = [outcome for portion in running for outcome in portion.result()]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    raise_unanswered(outcomes)
    return outcomes


def input_sizes(context: ConversionContext, manifests: Sequence[str]) -> "dict[str, InputSize]":
    """The sizes of manifests, in the order of their conversion: urgent ones first, then the oldest first.

    One without a row, or with a damaged one, is the last, without a size.
    """
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        found = list(pool.map(lambda manifest: find_row(context.services, manifest), manifests))
    rows = [row for row in found if row is not None]
    rows.sort(key=lambda row: (not row.urgent, row.created_at))
    speeds = Speeds({}, context.services.settings)
    sizes = {row.id: InputSize(speeds.busy_seconds(row, SECONDS_PER_CORE), row.files) for row in rows}
    return sizes | {manifest: InputSize(0, 0) for manifest in manifests if manifest not in sizes}


def convert_portion(
    context: ConversionContext, portion: list[str], leaves_held: Callable[[], bool], lately: Iterable[str] = ()
) -> list[ConversionOutcome]:
    converted = _convert_until_ended(context, portion, leaves_held)
    if (alarm := format_faults(converted)) is None:
        return converted
    context.log(alarm)
    queued = context.services.ledger.manifests.open(Lane.STREAM, State.QUEUED, lambda error: context.log(str(error)))
    check_environment(context, portion, chain(lately, (row.id for row in queued)))
    # The fault is over, or it concerns single objects only.
    stopped = [outcome.manifest for outcome in converted if outcome.fault is not None]
    ended = [outcome for outcome in converted if outcome.fault is None]
    return ended + _convert_until_ended(context, stopped, leaves_held)


def raise_unanswered(outcomes: Iterable[ConversionOutcome]) -> None:
    """Raise ``TransientError`` if requests for a manifest got no answer: its pointer is to be read again."""
    unanswered = [outcome for outcome in outcomes if outcome.unanswered]
    if unanswered:
        first = unanswered[0]
        raise TransientError(
            f"{format_count(len(unanswered), 'manifest')} could not be converted now (first: {first.manifest}: "
            f"{first.reason}): the next run repeats the micro-batch"
        )


class InputSize(NamedTuple):
    core_seconds: float
    """Time of one core for it; of a compressed file, which is one task, at most ``SECONDS_PER_CORE``."""
    files: int


def portions(sizes: Mapping[str, InputSize], limit: InputSize) -> list[list[str]]:
    """Manifests in order, in portions of at most ``limit``, or of one manifest. Pure."""
    filled: list[list[str]] = []
    remaining = limit
    for manifest, size in sizes.items():
        if not filled or size.core_seconds > remaining.core_seconds or size.files > remaining.files:
            filled.append([])
            remaining = limit
        filled[-1].append(manifest)
        remaining = InputSize(remaining.core_seconds - size.core_seconds, remaining.files - size.files)
    return filled


def side_by_side_limit(context: ConversionContext) -> InputSize:
    limits = context.services.settings.stream
    return InputSize(limits.side_by_side_seconds, BATCH_FILES)


def portion_limit(whole: InputSize) -> InputSize:
    """The limit of each of ``PORTIONS`` that are converted side by side."""
    return InputSize(whole.core_seconds / PORTIONS, whole.files // PORTIONS)


def parallel_conversions(context: ConversionContext) -> int:
    """Maximum number of conversions that go on at the same time, however small each one is."""
    return max(PORTIONS, min(context.services.settings.stream.cores, MAX_CONVERSIONS))


def size_of(sizes: Mapping[str, InputSize], portion: Iterable[str]) -> InputSize:
    found = [sizes[manifest] for manifest in portion]
    return InputSize(sum(size.core_seconds for size in found), sum(size.files for size in found))


def _convert_until_ended(
    context: ConversionContext, manifests: list[str], leaves_held: Callable[[], bool]
) -> list[ConversionOutcome]:
    done: list[ConversionOutcome] = []
    while manifests:
        outcomes = convert(manifests, context)
        held = [outcome for outcome in outcomes if outcome.state == HELD]
        ended = [outcome for outcome in outcomes if outcome.state != HELD]
        for outcome in ended:
            context.log(format_with_alarm(outcome))
        done += ended
        manifests = [outcome.manifest for outcome in held]
        if manifests and leaves_held():
            context.log(f"{format_count(len(manifests), 'manifest')} that other runs hold: left to the next run")
            return done + held
        if manifests:
            context.log(f"waiting for {format_count(len(manifests), 'manifest')} that other runs hold")
            context.wait(HELD_WAIT_SECONDS)
    return done
