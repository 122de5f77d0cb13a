"""A permission that is taken away, and what is played without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.removals.stage import Stage

ANSWER = "its answer"
LOG = "its log"
CAUSE = "the cause of the execution"
CLOUD = "CloudTrail"


@dataclass(frozen=True, slots=True)
class Removal:
    """One or several actions of a role, each of which is taken away by itself."""

    role: str
    """The name of the role without the stack's and without hashes."""
    actions: str
    """Separated by spaces."""
    what: str
    """What a person sees."""
    told: str
    """Where a sentence names role and action."""
    play: Callable[[Stage], str]
    """Does what needs the action, and returns the text that has to name it."""
