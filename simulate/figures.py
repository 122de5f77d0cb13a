"""Plots to files, each as PNG and SVG; needs matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from matplotlib.axes import Axes

SIZE_INCHES = (10.0, 5.5)
FORMATS = ("png", "svg")


def write_figures(plots: Mapping[str, Callable[[Axes], None]], folder: Path) -> list[Path]:
    """Write each plot by its name into ``folder``, which is created; returns the paths. Raises ``OSError``."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    # The same figures give the same SVG: matplotlib would take random ids and write the date.
    with mpl.rc_context({"svg.hashsalt": "hybrid-router"}):
        for name, draw in plots.items():
            figure = Figure(figsize=SIZE_INCHES, layout="constrained")
            draw(figure.add_subplot())
            for kind in FORMATS:
                path = folder / f"{name}.{kind}"
                figure.savefig(path, metadata={"Date": None} if kind == "svg" else None)
                written.append(path)
    return written
