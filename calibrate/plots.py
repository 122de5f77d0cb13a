"""A calibration as plots over the size of the input: duration, speed per core, output ratio. Needs matplotlib."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from calibrate.advice import MEGABYTE, kind_name, measured_kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from calibrate.measure import Measurement

AXES: dict[str, tuple[str, Callable[[Measurement], float]]] = {
    "duration": ("seconds of a conversion", lambda item: item.seconds),
    "speed": ("MB/s per core, of stored bytes", lambda item: item.speed / MEGABYTE),
    "output_ratio": ("bytes of Parquet for each byte of NDJSON", lambda item: item.output_ratio),
}
"""By the name of the plot: the label of its values, and the value of a measurement."""


def calibration_plots(found: Sequence[Measurement]) -> dict[str, Callable[[Axes], None]]:
    """What draws each plot, by its name; plain and compressed files are lines of their own."""
    return {f"calibration_{name}": partial(_draw, found=found, name=name) for name in AXES}


def _draw(axes: Axes, found: Sequence[Measurement], name: str) -> None:
    label, value = AXES[name]
    for kind in measured_kinds(found):
        sizes = [item.stored_bytes / MEGABYTE for item in kind]
        axes.plot(sizes, [value(item) for item in kind], marker="o", label=f"{kind_name(kind[0])} files")
    # The size is doubled from one conversion to the next.
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("MB of input, as stored")
    axes.set_ylabel(label)
    axes.set_title("Calibration on this machine")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
