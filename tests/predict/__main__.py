"""``python -m tests.predict [night] [stream]``: both lanes on the local cloud, predicted by the simulator and measured.

Exit code 1: not within 20 %. A night and a window of the stream lane before, and one after, calibrate, with other
files: all that the simulator learns of this machine is printed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.control_plane.stand_in import READ_SECONDS, WRITE_SECONDS
from bench.input_files import Recipe
from cli.deployed_stack import DeployedStack
from infra.synth import synth
from lake.settings import BatchSettings, ConvertSettings, DatasetRule, PeakSettings, Settings
from lake.settings.routing import DAYS
from local import isolation
from local.cloud import LocalCloud
from local.limits import Limits
from tests.chaos.pool_worker import connect_to
from tests.e2e.scenario import Scenario
from tests.load.lanes import new_world
from tests.predict import night_prediction, stream_prediction
from tests.predict.comparison import MB, average, compare, print_calibrations
from tests.predict.night import run_night
from tests.predict.stream import KB, StreamLoad, run_stream

if TYPE_CHECKING:
    from collections.abc import Callable

NIGHT = Settings(
    "predict",
    datasets=(DatasetRule("{folder}"),),
    peak=PeakSettings(hours=()),
    # Small splits and files, so that each of a run's cores has many tasks, as with files a hundred times as large.
    convert=ConvertSettings(split_bytes=8 * MB, target_file_bytes=2 * MB),
    # A run at a time: two would share the cores of this machine. Each file is a manifest, and none is merged.
    batch=BatchSettings(engines=("glue",), max_runs=1, workers=2, manifest_files=1, run_bytes=200 * MB),
)
WARM_UP = (Recipe("flat", 1, MB, 1),)
CALIBRATION = (Recipe("flat", 8, 40 * MB, 11), Recipe("gzip", 6, 30 * MB, 12))
PREDICTED = (Recipe("flat", 8, 60 * MB, 21), Recipe("gzip", 12, 30 * MB, 22), Recipe("flat", 16, 10 * MB, 23))
STREAM = Settings("predict", datasets=(DatasetRule("{folder}"),), peak=PeakSettings(hours=("00:00-24:00",), days=DAYS))
"""The defaults of the stream lane."""
BEFORE = StreamLoad("before", 120, 2.0, (300 * KB, 3 * MB), (3 * MB,), 4, 31)
STREAMED = StreamLoad("predicted", 480, 4.0, (200 * KB, 3 * MB, 800 * KB), (2 * MB, 4 * MB), 3, 41)
AFTER = StreamLoad("after", 120, 2.0, (300 * KB, 3 * MB), (3 * MB,), 4, 51)
CACHE = Path("build/bench/data")


def main(argv: list[str]) -> int:
    """Print calibration and figures of the named parts, or of both; returns 1 if a figure is too far away."""
    parser = argparse.ArgumentParser(prog="python -m tests.predict")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}; default: both")
    parser.add_argument(
        "--network",
        action="store_true",
        help=f"add {1000 * READ_SECONDS:.0f} ms to each read and {1000 * WRITE_SECONDS:.0f} ms to each write",
    )
    options = parser.parse_args(argv)
    parts = options.parts or list(PARTS)
    if unknown := set(parts) - set(PARTS):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    folder = Path("build/predict")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print(f"load average {os.getloadavg()[0]:.1f}: other processes on this machine make its times uneven", flush=True)
    with LocalCloud.start(folder / "cloud") as cloud:
        limits = Limits(read_seconds=READ_SECONDS, write_seconds=WRITE_SECONDS) if options.network else Limits()
        passed = [predict_part(cloud, folder, limits) for name, predict_part in PARTS.items() if name in parts]
    shutil.rmtree(folder)
    return 0 if all(passed) else 1


def _night(cloud: LocalCloud, folder: Path, limits: Limits) -> bool:
    cloud.limit(limits)
    outputs = cloud.deploy(synth(NIGHT, folder / "cdk.out"))
    session, config = isolation.session(cloud.access_key), isolation.client_config()
    scenario = Scenario(cloud, DeployedStack.connect(outputs, session, cloud.endpoint, config))
    # The first night after a deployment also starts the functions and fills caches.
    run_night(scenario, WARM_UP, CACHE, "warm")
    before = night_prediction.calibrate(run_night(scenario, CALIBRATION, CACHE, "before"))
    night = run_night(scenario, PREDICTED, CACHE, "predicted")
    after = night_prediction.calibrate(run_night(scenario, CALIBRATION, CACHE, "after"))
    own = night_prediction.calibrate(night)
    print(f"night: {len(night.sizes)} files")
    print_calibrations({"before": before, "after": after, "the night itself": own})
    waits = {key: night.started - put for key, put in night.put.items()}
    predicted, hindsight = (
        night_prediction.predict(night.sizes, waits, times, NIGHT) for times in (average(before, after), own)
    )
    return compare(predicted, night_prediction.measured(night), hindsight, ("runs", "manifests"))


def _stream(cloud: LocalCloud, _: Path, limits: Limits) -> bool:
    cloud.limit(replace(limits, index_lag_seconds=0))
    connect_to(cloud.environment)
    world = new_world(cloud, STREAM)
    before, found, after = (run_stream(world, load) for load in (BEFORE, STREAMED, AFTER))
    learned = [stream_prediction.calibrate(window, STREAM) for window in (before, after)]
    own = stream_prediction.calibrate(found, STREAM)
    print(f"stream: {len(found.files)} files at {STREAMED.rate:g}/s, load average {os.getloadavg()[0]:.1f}")
    print_calibrations({"before": learned[0], "after": learned[1], "the window itself": own})
    predicted, hindsight = (stream_prediction.predict(found, times, STREAM) for times in (average(*learned), own))
    return compare(predicted, stream_prediction.measured(found), hindsight, ("runs",))


PARTS: dict[str, Callable[[LocalCloud, Path, Limits], bool]] = {"night": _night, "stream": _stream}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
