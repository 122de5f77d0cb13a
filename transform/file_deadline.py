"""Limits in processor time: a file that is slow to read must not hold a core for hours."""

from collections.abc import Callable

from ndjson_arrow import detect_codec

from lake.settings import ConvertSettings, StreamSettings
from lake.texts import format_count
from transform.source import UnreadableNowError
from transform.task_model import Split

GRACE_SECONDS = 60.0
"""Processor time in which any speed is allowed: a small file costs little, and the first rows of a file can be slow."""
COMPRESSED_SHARE = 0.1
"""Share of the slowest speed that a compressed file has to reach, as its bytes are the stored ones. Measured: logs that
bzip2 compresses to a 36th are read at 0.3 MB/s, random rows at 1.6 MB/s, gzip never below that; a row of 1,000 keys
before empty objects at 0.02 to 0.05 MB/s."""
MAGIC_BYTES = 4
MIN_STREAM_SECONDS = 1.0
"""A task of the stream lane that has less time left reads no further file."""


class SlowFileError(Exception):
    """The file takes longer than the stream lane has for it; the message is the reason."""


def stream_seconds(stream: StreamSettings) -> float:
    """Processor time after which a file leaves the stream lane: the latency goal, and at least the grace."""
    return max(float(stream.latency_goal_seconds), GRACE_SECONDS)


class SplitDeadline:
    """Judges how fast one split is read, from its creation on.

    Only the time counts for which this thread has had a processor: not what S3, the network, the disk or other tasks
    made it wait. So no fault of the environment is taken for a fault of the file. A large gzip file is inflated by a
    thread of its own, whose time is not counted: its limits are those of bytes (`native/src/inflate.rs`).
    ``processor_time``: seconds of processor time of the thread that reads the split. ``stream_seconds``: those that the
    split may take in the stream lane; None in the batch lane.
    """

    def __init__(
        self,
        split: Split,
        settings: ConvertSettings,
        processor_time: Callable[[], float],
        stream_seconds: float | None = None,
    ) -> None:
        self._split = split
        self._settings = settings
        self._processor_time = processor_time
        self._stream_seconds = stream_seconds
        self._begun = processor_time()
        self._read_bytes = 0
        self._slowest = float(settings.min_bytes_per_second)

    def add(self, piece: memoryview) -> None:
        if not self._read_bytes and self._split.whole and detect_codec(bytes(piece[:MAGIC_BYTES])) is not None:
            self._slowest *= COMPRESSED_SHARE
        self._read_bytes += len(piece)

    def check(self) -> None:
        """Raise an error if the split takes too long.

        Raises ``SlowFileError``: it is a task of the stream lane: the batch lane decides whether the file can be read;
        ``UnreadableNowError``: it is a task of the batch lane.
        """
        limits, seconds = self._settings, self._processor_time() - self._begun
        if self._stream_seconds is not None and seconds > self._stream_seconds:
            limit = "more than the stream lane has for it (stream.latency_goal_seconds)"
        elif seconds > limits.max_core_minutes * 60:
            limit = f"more than convert.max_core_minutes ({limits.max_core_minutes:g})"
        elif seconds > GRACE_SECONDS and self._read_bytes < self._slowest * seconds:
            limit = f"slower than convert.min_bytes_per_second ({limits.min_bytes_per_second:,})"
            if self._slowest != limits.min_bytes_per_second:
                limit += " allows a compressed file"
        else:
            return
        took = f"{format_count(self._read_bytes, 'byte')} took {round(seconds / 60, 1):g} minutes of processor time"
        if self._stream_seconds is not None:
            raise SlowFileError(f"{took}, {limit}")
        advice = f"{took}, {limit}: if the file is in order, change the setting and, for a stage, deploy it"
        raise UnreadableNowError(advice, self._split.file)
