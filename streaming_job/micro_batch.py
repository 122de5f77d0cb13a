"""Converts one portion of manifests, and limits how much is converted in parallel."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from lake.errors import TransientError
from lake.ledger import State
from lake.manifest import Lane
from lake.settings.lanes import BATCH_FILES, SECONDS_PER_CORE
from lake.speed import InputSize, Speeds
from lake.texts import format_count
from streaming_job.inbox import find_row
from transform.convert import convert
from transform.outcome import HELD, ConversionOutcome, format_faults, format_with_alarm
from transform.preflight import check_environment
from transform.task_model import ConversionContext

PARALLEL_READS = 16
PORTIONS = 4
"""Number of portions that may always be open: while one is claimed, planned or published, tasks of the others use its
cores."""
MAX_CONVERSIONS = 64
"""Maximum conversions at a time: each has about thirty threads of the driver, and most of them wait."""


def input_sizes(context: ConversionContext, manifests: Sequence[str]) -> dict[str, InputSize]:
    """The sizes of manifests, in the order of their conversion: urgent ones first, then the oldest first.

    A manifest without a readable row comes last, with size 0.
    """
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        found = list(pool.map(lambda manifest: find_row(context, manifest), manifests))
    rows = [row for row in found if row is not None]
    rows.sort(key=lambda row: (not row.urgent, row.created_at))
    speeds = Speeds({}, context.settings)
    sizes = {row.id: InputSize(speeds.busy_seconds(row, SECONDS_PER_CORE), row.files) for row in rows}
    return sizes | {manifest: InputSize(0, 0) for manifest in manifests if manifest not in sizes}


def convert_portion(
    context: ConversionContext, portion: Sequence[str], recent: Iterable[str] = ()
) -> list[ConversionOutcome]:
    """Convert until every manifest is terminal, waiting, unknown or held by another run.

    The sweep finishes a waiting manifest that is PUBLISHING, and writes another pointer to a QUEUED one. So one denied
    object does not hold up later pointers. ``recent`` has manifests that this run converted: if their files are still
    readable, a denied file does not mean a denied input. Raises ``BlockedRunError`` if the environment lets no manifest
    be converted, and ``TransientError`` from ``convert``.
    """
    converted = _convert_and_log(context, portion)
    if (alarm := format_faults(converted)) is None:
        return converted
    context.log(alarm)
    queued = context.ledger.manifests.open(Lane.STREAM, State.QUEUED, lambda error: context.log(str(error)))
    check_environment(context, portion, chain(recent, (row.id for row in queued)))
    # The fault has passed, or it concerns only single objects.
    stopped = [outcome.manifest for outcome in converted if outcome.fault is not None]
    ended = [outcome for outcome in converted if outcome.fault is None]
    return ended + _convert_and_log(context, stopped)


def _convert_and_log(context: ConversionContext, manifests: Sequence[str]) -> list[ConversionOutcome]:
    outcomes = convert(manifests, context)
    for outcome in outcomes:
        context.log(format_with_alarm(outcome))
    return outcomes


def read_pointers(pointers: Mapping[str, Sequence[str]], outcomes: Iterable[ConversionOutcome]) -> list[str]:
    """The keys of pointers that may be deleted: those to held manifests stay, so that they are read again."""
    held = {outcome.manifest for outcome in outcomes if outcome.state == HELD}
    return [key for manifest, keys in pointers.items() if manifest not in held for key in keys]


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
    limits = context.settings.stream
    return InputSize(limits.parallel_seconds, BATCH_FILES)


def portion_limit(whole: InputSize) -> InputSize:
    """The limit of a portion, unless it is one larger manifest: ``PORTIONS`` of them fill the cores."""
    return InputSize(whole.core_seconds / PORTIONS, whole.files // PORTIONS)


def parallel_conversions(context: ConversionContext) -> int:
    """Maximum number of parallel conversions, even if all are small."""
    return max(PORTIONS, min(context.settings.stream.cores, MAX_CONVERSIONS))


def size_of(sizes: Mapping[str, InputSize], portion: Iterable[str]) -> InputSize:
    found = [sizes[manifest] for manifest in portion]
    return InputSize(sum(size.core_seconds for size in found), sum(size.files for size in found))
