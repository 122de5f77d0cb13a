"""``python -m tests.load [name ...]``: each load test prints its figures; the exit code is 1 if a limit is exceeded."""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from local.cloud import LocalCloud
from local.limits import Limits
from tests.chaos.runtime_patches import connect_to
from tests.load.lanes import stream_load, urgent_load
from tests.load.large_file import large_file_load


def main(argv: list[str]) -> int:
    """Run the named load tests, or all; returns 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(prog="python -m tests.load")
    parser.add_argument("names", nargs="*", metavar="name", help=f"{', '.join(LOAD_TESTS)}; default: all of them")
    options = parser.parse_args(argv)
    if unknown := set(options.names) - set(LOAD_TESTS):
        parser.error(f"unknown load tests: {', '.join(sorted(unknown))}; choose from {', '.join(LOAD_TESTS)}")
    with tempfile.TemporaryDirectory(prefix="load-") as folder, LocalCloud.start(Path(folder) / "cloud") as cloud:
        cloud.limit(Limits(index_lag_seconds=0))
        connect_to(cloud.environment)
        failed = [name for name in options.names or LOAD_TESTS if not LOAD_TESTS[name](cloud, Path(folder))]
    if failed:
        print(f"a limit is exceeded: {', '.join(failed)}")
    return 1 if failed else 0


LOAD_TESTS: dict[str, Callable[[LocalCloud, Path], bool]] = {
    "stream": stream_load,
    "urgent": urgent_load,
    "large": large_file_load,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
