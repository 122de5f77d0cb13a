"""``python -m bench.verify_speed``: how fast one core compares published files with their input."""

from __future__ import annotations

import argparse
import io
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bench.__main__ import CACHE
from bench.input_files import Recipe, prepare
from bench.product_competitor import convert_tasks, plan_tasks
from calibrate.local_objects import local_version
from lake.commit import PendingObject
from lake.settings import ConvertSettings
from verify.digests import ExpectedFile, InputTask, LakeTask, SideDigest, digest_input, digest_lake
from verify.quarantine_records import QuarantinedFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_s3 import S3Client

    from bench.input_files import InputFiles

FILES = 2
FILE_BYTES = 20_000_000


class LocalReads:
    """The two requests of a verification, answered from folders: a bucket is a folder, an object is a file in it."""

    def as_client(self) -> S3Client:
        """This reader, for functions whose parameter is an S3 client."""
        return cast("S3Client", self)

    def get_object(self, *, Bucket: str, Key: str, Range: str, **_: object) -> dict[str, Any]:  # noqa: N803
        """A range of a file."""
        first, last = map(int, Range.removeprefix("bytes=").split("-"))
        with (Path(Bucket) / Key).open("rb") as file:
            file.seek(first)
            return {"Body": io.BytesIO(file.read(last - first + 1))}

    def download_file(self, bucket: str, key: str, target: str) -> None:
        """A copy of a file."""
        shutil.copyfile(Path(bucket) / key, target)


def main() -> None:
    """Print for each shape the speed of both sides and of the whole comparison, in input bytes per processor second."""
    parser = argparse.ArgumentParser(prog="bench.verify_speed", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each side")
    options = parser.parse_args()
    for shape in ("flat", "nested"):
        files = prepare(Recipe(shape, FILES, FILE_BYTES), CACHE, 1)
        with tempfile.TemporaryDirectory() as output:
            objects = convert(files, Path(output))
            versions = [local_version(path) for path in files.paths]
            expected = tuple(ExpectedFile(version, QuarantinedFile(), None) for version in versions)
            task = InputTask(expected, ConvertSettings().max_line_bytes, provenance=False)
            in_files, input_seconds = measure(digest_input, task, options.rounds)
            in_lake, lake_seconds = measure(digest_lake, LakeTask(objects), options.rounds)
        if in_files.rows.differing_buckets(in_lake.rows):
            raise SystemExit(f"{shape}: the rows differ, so the figures mean nothing")
        size = files.bytes / 1e6
        sys.stdout.write(
            f"{shape}: input {size / input_seconds:.1f}, lake {size / lake_seconds:.1f}, both "
            f"{size / (input_seconds + lake_seconds):.1f} MB/s per core ({options.rounds} rounds, {size:.0f} MB)\n"
        )


def convert(files: InputFiles, output: Path) -> tuple[PendingObject, ...]:
    """The Parquet files of the product's own tasks."""
    list(convert_tasks(str(output), plan_tasks(files, ConvertSettings())))
    paths = sorted(output.glob("*.parquet"))
    return tuple(PendingObject(str(output), path.name, "", (), "", path.stat().st_size, 0) for path in paths)


def measure(
    function: Callable[[S3Client, Any], SideDigest], task: InputTask | LakeTask, rounds: int
) -> tuple[SideDigest, float]:
    """The digest, and the median processor time of this process in seconds."""
    seconds = []
    digest = SideDigest()
    for _ in range(rounds):
        started = time.process_time()
        digest = function(LocalReads().as_client(), task)
        seconds.append(time.process_time() - started)
    return digest, statistics.median(seconds)


if __name__ == "__main__":
    main()
