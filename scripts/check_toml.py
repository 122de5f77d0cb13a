"""``make check-toml``: every TOML file of the project parses, and every settings file is valid."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from lake.errors import HybridRouterError
from lake.settings import load_settings

CHECKOUT = Path(__file__).parents[1]
PATTERNS = ("*.toml", "[!.]*/*.toml")
"""Hidden folders hold what other tools installed."""


def find_faults(files: Iterable[Path]) -> list[str]:
    """One line per faulty file; a file in a folder named ``settings`` is also read as settings."""
    faults = []
    for file in files:
        try:
            tomllib.loads(file.read_text(encoding="utf-8"))
            if file.parent.name == "settings":
                load_settings(file)
        except (UnicodeDecodeError, tomllib.TOMLDecodeError, HybridRouterError) as error:
            faults.append(f"{file}: {error}")
    return faults


def main() -> int:
    """Check the files of this checkout; 1 if one is faulty."""
    files = chain.from_iterable(sorted(CHECKOUT.glob(pattern)) for pattern in PATTERNS)
    faults = find_faults(files)
    sys.stderr.write("".join(f"{fault}\n" for fault in faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
