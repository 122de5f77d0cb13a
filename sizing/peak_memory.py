"""The peak resident memory of this process."""

import resource
from pathlib import Path

STATUS = Path("/proc/self/status")
CLEAR_PEAK = Path("/proc/self/clear_refs")
RESET_PEAK = "5"
"""Linux, proc(5): resets the peak resident set size ("high water mark") to the current value."""


def reset_peak_bytes() -> None:
    """Reset the peak; no effect on systems other than Linux."""
    if CLEAR_PEAK.exists():
        CLEAR_PEAK.write_text(RESET_PEAK)


def peak_bytes() -> int:
    """The peak resident memory of this process since the last reset, in bytes."""
    if STATUS.exists():
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
