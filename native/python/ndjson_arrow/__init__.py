"""Exact NDJSON to string columns."""

from ndjson_arrow._native import REASONS

__all__ = ["REASONS"]
