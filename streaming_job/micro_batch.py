"""Converts all manifests of one micro-batch."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from lake.cut import cut
from lake.errors import TransientError
from lake.ledger import State
from lake.manifest import Lane
from lake.settings.lanes import BATCH_FILES, SECONDS_PER_CORE
from lake.speed import InputSize, Speeds
from lake.texts import format_count
from streaming_job.inbox import find_row
from transform.convert import convert, repeat_while_passing
from transform.outcome import HELD, ConversionOutcome, format_faults, format_with_alarm
from transform.preflight import check_environment
from transform.task_model import ConversionContext

PARALLEL_READS = 16
PORTIONS = 4
"""Number of parallel portions: while one is claimed, planned or published, tasks of the others use its cores."""
MAX_CONVERSIONS = 64
"""Maximum conversions at a time: each has about thirty threads of the driver, and most of them wait."""
HELD_WAIT_SECONDS = 5.0


def convert_manifests(
    context: ConversionContext,
    manifests: Sequence[str],
    *,
    is_stopping: Callable[[], bool] = lambda: False,
    recent: Iterable[str] = (),
    on_open: Callable[[float], object] = lambda _: None,
) -> list[ConversionOutcome]:
    """Convert until every manifest is terminal, waiting or unknown; only then may their pointers be deleted.

    The sweep finishes a waiting manifest that is PUBLISHING, and writes another pointer to a QUEUED one. So one denied
    object does not hold up later pointers.

    Portions of manifests are converted in parallel, urgent ones first, then the oldest. The next portion begins when
    another one is published, so that cores which a portion no longer needs have work. Together they have at most
    ``StreamSettings.parallel_seconds`` of work, or one manifest each. ``is_stopping`` returns whether the run is
    ending: then a manifest that another run holds is returned as ``HELD``, for the next run. ``recent`` has manifests
    that this run converted: if their files are still readable, a denied file does not mean a denied input. ``on_open``
    gets the work of the unfinished portions, in seconds of one core, before the first portion and after each one.
    Raises ``BlockedRunError`` if the environment lets no manifest be converted, and ``TransientError`` from ``convert``
    or if requests for a manifest got no answer: in both cases the micro-batch must be repeated.
    """
    sizes = repeat_while_passing(context, lambda: input_sizes(context, manifests))
    waiting = cut(sizes, sizes.__getitem__, portion_limit(parallel_limit(context)))
    open_seconds, lock = sum(size.core_seconds for size in sizes.values()), threading.Lock()
    on_open(open_seconds)

    def convert_one(portion: Sequence[str]) -> list[ConversionOutcome]:
        nonlocal open_seconds
        converted = convert_portion(context, portion, is_stopping, recent)
        with lock:
            open_seconds -= size_of(sizes, portion).core_seconds
            on_open(open_seconds)
        return converted

    # After an error no further portion begins, and running portions end first.
    with ThreadPoolExecutor(PORTIONS) as pool:
        running = [pool.submit(convert_one, portion) for portion in waiting]
        try:
            outcomes = [outcome for portion in running for outcome in portion.result()]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    raise_unanswered(outcomes)
    return outcomes


def input_sizes(context: ConversionContext, manifests: Sequence[str]) -> dict[str, InputSize]:
    """The sizes of manifests, in the order of their conversion: urgent ones first, then the oldest first.

    A manifest without a readable row comes last, with size 0.
    """
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        found = list(pool.map(lambda manifest: find_row(context.services, manifest), manifests))
    rows = [row for row in found if row is not None]
    rows.sort(key=lambda row: (not row.urgent, row.created_at))
    speeds = Speeds({}, context.services.settings)
    sizes = {row.id: InputSize(speeds.busy_seconds(row, SECONDS_PER_CORE), row.files) for row in rows}
    return sizes | {manifest: InputSize(0, 0) for manifest in manifests if manifest not in sizes}


def convert_portion(
    context: ConversionContext, portion: Sequence[str], is_stopping: Callable[[], bool], recent: Iterable[str] = ()
) -> list[ConversionOutcome]:
    converted = _convert_until_ended(context, portion, is_stopping)
    if (alarm := format_faults(converted)) is None:
        return converted
    context.log(alarm)
    queued = context.services.ledger.manifests.open(Lane.STREAM, State.QUEUED, lambda error: context.log(str(error)))
    check_environment(context, portion, chain(recent, (row.id for row in queued)))
    # The fault has passed, or it concerns only single objects.
    stopped = [outcome.manifest for outcome in converted if outcome.fault is not None]
    ended = [outcome for outcome in converted if outcome.fault is None]
    return ended + _convert_until_ended(context, stopped, is_stopping)


def raise_unanswered(outcomes: Iterable[ConversionOutcome]) -> None:
    """Raise ``TransientError`` if requests for a manifest got no answer, so that its pointer must be read again."""
    unanswered = [outcome for outcome in outcomes if outcome.unanswered]
    if unanswered:
        first = unanswered[0]
        raise TransientError(
            f"{format_count(len(unanswered), 'manifest')} could not be converted now (first: {first.manifest}: "
            f"{first.reason}): the next run repeats the micro-batch"
        )


def parallel_limit(context: ConversionContext) -> InputSize:
    limits = context.services.settings.stream
    return InputSize(limits.parallel_seconds, BATCH_FILES)


def portion_limit(whole: InputSize) -> InputSize:
    """The limit of each of the ``PORTIONS`` parallel portions."""
    return InputSize(whole.core_seconds / PORTIONS, whole.files // PORTIONS)


def parallel_conversions(context: ConversionContext) -> int:
    """Maximum number of parallel conversions, even if all are small."""
    return max(PORTIONS, min(context.services.settings.stream.cores, MAX_CONVERSIONS))


def size_of(sizes: Mapping[str, InputSize], portion: Iterable[str]) -> InputSize:
    found = [sizes[manifest] for manifest in portion]
    return InputSize(sum(size.core_seconds for size in found), sum(size.files for size in found))


def _convert_until_ended(
    context: ConversionContext, manifests: Sequence[str], is_stopping: Callable[[], bool]
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
        if manifests and is_stopping():
            context.log(f"{format_count(len(manifests), 'manifest')} that other runs hold: left to the next run")
            return done + held
        if manifests:
            context.log(f"waiting for {format_count(len(manifests), 'manifest')} that other runs hold")
            context.wait(HELD_WAIT_SECONDS)
    return done
