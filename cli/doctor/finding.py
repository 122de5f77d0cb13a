"""One line of the doctor's."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Readiness(StrEnum):
    """What one check has found."""

    OK = "ok"
    TO_DO = "to do"
    """Something has to be done first; the text says what."""
    UNREACHABLE = "not reachable"
    """Credentials, region, network or a permission is missing; the text says which."""
    SKIPPED = "skipped"
    """It could not be looked at, because of an earlier line, or is not needed here."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, and what was found or has to be done."""

    name: str
    state: Readiness
    text: str
