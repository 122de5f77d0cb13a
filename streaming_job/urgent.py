"""Urgent manifests, converted in parallel with the micro-batches: they wait for no trigger and no other pointers."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice

from botocore.exceptions import BotoCoreError, ClientError

from lake.layout import URGENT, inbox, list_objects, manifest_of_pointer
from lake.texts import format_count
from streaming_job.inbox import delete_pointers, pass_over
from streaming_job.micro_batch import (
    InputSize,
    convert_portion,
    input_sizes,
    parallel_conversions,
    portion_limit,
    portions,
    raise_unanswered,
    side_by_side_limit,
    size_of,
)
from transform.outcome import HELD, ConversionOutcome
from transform.task_model import ConversionContext

POOL = "urgent"
"""Spark's scheduler pool of urgent tasks: they get each core that becomes free, until they have as many as the tasks of
the micro-batch."""
MAX_LOOK_SECONDS = 5.0
"""Maximum interval between two looks at the inbox, and between two heartbeats. A day of looks is 17,280 LIST requests:
0.09 dollars."""
MAX_POINTERS = 1000
"""Maximum number read in one look at the inbox, the oldest first: one LIST request."""


def look_seconds(context: ConversionContext) -> float:
    return min(MAX_LOOK_SECONDS, context.services.settings.stream.trigger_seconds)


class UrgentInbox:
    """Converts what urgent pointers name, the oldest first, in portions side by side, in threads of its own.

    No checkpoint is needed. A pointer is deleted once its manifest is terminal, unknown or waiting, for which the sweep
    writes another one. Until then each look finds it again, that of the next run as well. ``on_converted``: gets the
    outcomes of each portion; called from several threads.
    """

    def __init__(self, context: ConversionContext, on_converted: Callable[[list[ConversionOutcome]], None]) -> None:
        self._context = replace(context, pool=POOL)
        self._on_converted = on_converted
        self._lock = threading.Lock()
        self._converting: dict[str, InputSize] = {}
        self._portions = 0
        self._limit, self._max_portions = side_by_side_limit(context), parallel_conversions(context)
        self._closed = False
        self._error: BaseException | None = None
        self._due = threading.Event()
        self._looks: threading.Thread | None = None
        self._threads = ThreadPoolExecutor(self._max_portions, thread_name_prefix="urgent")

    def start(self) -> None:
        self._looks = threading.Thread(target=self._look_until_closed, name="urgent-inbox", daemon=True)
        self._looks.start()

    def look(self) -> None:
        """Begin portions of what is new in the inbox, as many as there is room for; none after a fault that passes."""
        with self._lock:
            if self._closed or self._error is not None or self._portions >= self._max_portions:
                return
            try:
                pointers = self._new_pointers()
                sizes = input_sizes(self._context, list(pointers))
            except (BotoCoreError, ClientError) as error:
                pass_over(self._context, error)
                return
            for portion in portions(sizes, portion_limit(self._limit)):
                together = {**self._converting, **{manifest: sizes[manifest] for manifest in portion}}
                size = size_of(together, together)
                fits = size.core_seconds <= self._limit.core_seconds and size.files <= self._limit.files
                # A few slow files, which are small, do not keep the others waiting.
                if self._portions and not (fits and self._portions < self._max_portions):
                    return
                self._converting = together
                self._portions += 1
                self._threads.submit(self._convert, {item: pointers[item] for item in portion})

    def close(self) -> bool:
        """Begin no other portion; whether none is being converted."""
        with self._lock:
            self._closed = True
            return not self._portions

    def reopen(self) -> None:
        # Without the lock: a look can hold it for minutes, and the heartbeat must not wait for it.
        self._closed = False

    def raise_error(self) -> None:
        """Raise what has ended a portion, or a look: nothing is begun after it."""
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Begin no other portion, and return when those that are being converted have ended."""
        self.close()
        self._threads.shutdown(wait=True)
        if self._looks is not None:
            looks, self._looks = self._looks, None
            self._due.set()
            looks.join()

    def _look_until_closed(self) -> None:
        interval = look_seconds(self._context)
        while True:
            self._due.clear()
            if self._looks is not threading.current_thread():
                return
            try:
                self.look()
            except BaseException as error:
                self._fail(error)
            self._due.wait(interval)

    def _new_pointers(self) -> dict[str, list[str]]:
        """Keys of pointers by manifest, the oldest manifest first, without those that are being converted."""
        services, pointers = self._context.services, dict[str, list[str]]()
        prefix = f"{inbox(services.ledger.stream.shard)}{URGENT}"
        for item in islice(list_objects(services.s3, services.resources.control_bucket, prefix), MAX_POINTERS):
            manifest = manifest_of_pointer(item["Key"])
            if manifest is not None and manifest not in self._converting:
                pointers.setdefault(manifest, []).append(item["Key"])
        # An id begins with the time at which its manifest was made.
        return dict(sorted(pointers.items()))

    def _convert(self, pointers: Mapping[str, Sequence[str]]) -> None:
        deleted = True
        try:
            self._context.log(f"urgent: {format_count(len(pointers), 'manifest')}")
            outcomes = convert_portion(self._context, list(pointers), lambda: self._closed)
            self._on_converted(outcomes)
            raise_unanswered(outcomes)
            held = {outcome.manifest for outcome in outcomes if outcome.state == HELD}
            read = [key for manifest, keys in pointers.items() if manifest not in held for key in keys]
            deleted = delete_pointers(self._context, read)
        except BaseException as error:
            self._fail(error)
        finally:
            with self._lock:
                self._converting = {item: size for item, size in self._converting.items() if item not in pointers}
                self._portions -= 1
            # There is room for others. What could not be deleted would only be read again.
            if deleted:
                self._due.set()

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self.close()
