"""Hides fastavro's compiled files, which the functions do not have, from the process that imports this module."""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

COMPILED = frozenset(f"fastavro._{name}" for name in ("read", "write", "schema", "validation", "logical_readers"))


class NotCompiled:
    def find_spec(self, name: str, _path: object = None, _target: ModuleType | None = None) -> ModuleSpec | None:
        if name in COMPILED:
            raise ImportError(name)
        return None


sys.meta_path.insert(0, NotCompiled())
