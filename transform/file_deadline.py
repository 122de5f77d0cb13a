"""A deadline in processor time: a file that is slow to read must not hold a core for hours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.commands import reprocess_file_command
from lake.counted import format_count
from transform.source import UnreadableFileError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lake.settings import ConvertSettings
    from transform.task_model import Split


class SplitDeadline:
    """Judges how fast one split is read, from its creation on.

    Only the time counts for which this thread has had a processor: not what S3, the network, the disk or other tasks
    made it wait. So no fault of the environment is taken for a fault of the file.

    Parameters
    ----------
    processor_time
        Seconds of processor time of the thread that reads the split.
    """

    def __init__(self, split: Split, settings: ConvertSettings, processor_time: Callable[[], float]) -> None:
        self._file = split.file
        self._settings = settings
        self._processor_time = processor_time
        self._begun = processor_time()
        self._read_bytes = 0

    def check(self, further_bytes: int) -> None:
        """Raise ``UnreadableFileError`` if all bytes read so far, as stored, are too few for the time they took."""
        self._read_bytes += further_bytes
        seconds, limits = self._processor_time() - self._begun, self._settings
        if seconds < limits.deadline_minutes * 60 or self._read_bytes >= limits.min_bytes_per_second * seconds:
            return
        took = f"{format_count(self._read_bytes, 'byte')} took {round(seconds / 60, 1):g} minutes of processor time"
        raise UnreadableFileError(
            f"{took}, slower than convert.min_bytes_per_second ({limits.min_bytes_per_second:,}) after "
            f"convert.deadline_minutes ({limits.deadline_minutes:g}): if the file is in order, lower the speed and "
            f"deploy, then run: {reprocess_file_command(self._file.uri)}"
        )
