"""What the usual published estimates of such a day get wrong, in figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.settings.workers import DPUS, WORKERS
from simulate.options import ALL_BATCH
from simulate.speed import MEGABYTE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lake.settings import Settings
    from simulate.result import Simulation

MINUTES_PER_GB = 2.5
FILES_PER_HOUR = 7_000
WORKER_TYPE = "G.2X"
WORKERS_OF_A_RUN = 10
QUOTA = 500
"""DPUs of a default account."""
GB = 10**9


def estimate_lines(settings: Settings, day: Simulation) -> Iterator[str]:
    """Paragraphs; ``day`` is the largest one."""
    price = settings.price.dpu_hour
    yield from _dpus(price)
    yield ""
    yield from _speed(settings, day)
    yield ""
    yield from _files(day)


def _dpus(price: float) -> Iterator[str]:
    dpus = WORKERS_OF_A_RUN * DPUS[WORKER_TYPE]
    yield (
        f"**A {WORKER_TYPE} counts {DPUS[WORKER_TYPE]:g} DPU, not one.** {WORKERS_OF_A_RUN} workers of this type for "
        f"an hour cost {dpus:g} DPU-hours, ${dpus * price:.2f} at ${price:g}; an estimate that multiplies workers by "
        f"the price of a DPU says ${WORKERS_OF_A_RUN * price:.2f}. They take {dpus:g} DPU of the quota as well: "
        f"{int(QUOTA // dpus)} such runs fill a quota of {QUOTA} DPU, and the streaming job has no room beside them."
    )


def _speed(settings: Settings, day: Simulation) -> Iterator[str]:
    core = settings.price.mb_per_second_per_core
    seconds = GB / (core * MEGABYTE) / WORKERS["G.1X"]
    hours = day.bytes / GB * MINUTES_PER_GB / 60
    best = min(
        option.dollars.total for option in day.options if option.routing == ALL_BATCH and option.engine == "glue"
    )
    yield (
        f'**"{MINUTES_PER_GB} minutes per GB" says little.** A worker of 4 vCPU that reads {core:g} MB/s '
        f"on each of them needs {seconds:.1f} seconds for a GB. For {day.bytes / GB:,.0f} GB {MINUTES_PER_GB} minutes "
        f"each are {hours:,.0f} hours of a worker, ${hours * settings.price.dpu_hour:,.0f} with G.1X; the simulated "
        f"night costs ${best:,.0f} on the same engine. Time per GB says something only with the number of cores, the "
        "compression and the job: the same files took six to eight times as long with a job that infers the schema "
        "and counts before it writes ([performance.md](performance.md))."
    )


def _files(day: Simulation) -> Iterator[str]:
    needed = day.files / 24
    yield (
        f"**{day.files:,} files a day do not come at {FILES_PER_HOUR:,} an hour.** {FILES_PER_HOUR:,} an hour are "
        f"{24 * FILES_PER_HOUR:,} a day; {day.files:,} are {needed:,.0f} an hour if they come evenly, and they do not. "
        f"Of {day.bytes / day.files / GB:g} GB each that is {day.bytes / 86_400 / GB:.1f} GB a second, all day."
    )
