"""Manifests to Parquet: read exactly, write, audit, commit, publish. The same in both lanes."""

from transform.convert import convert
from transform.services import Outcome, Services

__all__ = ["Outcome", "Services", "convert"]
