"""Hides fastavro's compiled files, which the functions do not have, from the process that imports this module."""

import sys

COMPILED = ("read", "write", "schema", "validation", "logical_readers")

sys.modules.update(dict.fromkeys(f"fastavro._{name}" for name in COMPILED))  # type: ignore[arg-type]
