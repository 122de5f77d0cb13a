"""``python -m tests.predict``: a night on the local cloud, predicted by the simulator and measured; 1: not within 20 %.

A night before and one after it calibrate, with other files: all that the simulator learns of this machine is printed.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import fields
from pathlib import Path

from bench.input_files import Recipe
from cli.deployed_stack import DeployedStack
from infra.synth import synth
from lake.settings import BatchSettings, ConvertSettings, DatasetRule, PeakSettings, Settings
from local import isolation
from local.cloud import LocalCloud
from tests.e2e.scenario import Scenario
from tests.predict.night import run_night
from tests.predict.prediction import Calibration, NightFigures, average, calibrate, measured, predict

MB = 1_000_000
TOLERANCE = 0.2
EXACT = ("runs", "manifests")
SETTINGS = Settings(
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


def main() -> int:
    """Print the calibration, and both figures of each kind; returns 1 if one differs by more than the tolerance."""
    cache, folder = Path("build/bench/data"), Path("build/predict")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print(f"load average {os.getloadavg()[0]:.1f}: other processes on this machine make its nights uneven", flush=True)
    with LocalCloud.start(folder / "cloud") as cloud:
        outputs = cloud.deploy(synth(SETTINGS, folder / "cdk.out"))
        session, config = isolation.session(cloud.access_key), isolation.client_config()
        scenario = Scenario(cloud, DeployedStack.connect(outputs, session, cloud.endpoint, config))
        # The first night after a deployment also starts the functions and fills caches.
        run_night(scenario, WARM_UP, cache, "warm")
        before = calibrate(run_night(scenario, CALIBRATION, cache, "before"))
        night = run_night(scenario, PREDICTED, cache, "predicted")
        after = calibrate(run_night(scenario, CALIBRATION, cache, "after"))
    shutil.rmtree(folder)
    own = calibrate(night)
    print(f"{'calibration':15} {'before':>15}      {'after':>15}      the night itself, {len(night.sizes)} files")
    for name in (field.name for field in fields(Calibration)):
        print(f"{name:15} {' '.join(_value(getattr(times, name)) for times in (before, after, own))}")
    waits = {key: night.started - put for key, put in night.put.items()}
    predicted, hindsight = (predict(night.sizes, waits, times, SETTINGS) for times in (average(before, after), own))
    return _compare(predicted, measured(night), hindsight)


def _value(value: float) -> str:
    return f"{value / MB:15.1f} MB/s" if value > MB else f"{value:15.2f} s   "


def _compare(predicted: NightFigures, found: NightFigures, hindsight: NightFigures) -> int:
    """``hindsight`` knows the times of the night itself: what it misses is the simulator's, the rest the machine's."""
    print(f"{'':15} {'predicted':>10} {'measured':>10} {'error':>8} {'in hindsight':>13}")
    wrong = []
    for name in (field.name for field in fields(NightFigures)):
        said, was, after = (getattr(figures, name) for figures in (predicted, found, hindsight))
        print(f"{name:15} {said:10.3f} {was:10.3f} {said / was - 1:8.1%} {after / was - 1:13.1%}")
        if abs(said / was - 1) > (0 if name in EXACT else TOLERANCE):
            wrong.append(name)
    if not wrong:
        print(f"within {TOLERANCE:.0%}, counts exactly")
        return 0
    print(
        f"NOT within {TOLERANCE:.0%}: {', '.join(wrong)}. If the figures in hindsight are, the machine worked at "
        "another speed in the predicted night: run it again while nothing else does"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
