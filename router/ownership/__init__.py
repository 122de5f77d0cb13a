"""What owns an arrival: exactly one manifest or part, whichever process crashes or repeats a step."""

from router.ownership.owner import Draft, RoutedArrival, cut_drafts, write_pointer
from router.ownership.resolve import OWNER_GRACE, Intent, delete_intent, read_arrivals, read_intent, write_intent
from router.ownership.take import ArrivalOutcome, Ownership, take_ownership

__all__ = [
    "OWNER_GRACE",
    "ArrivalOutcome",
    "Draft",
    "Intent",
    "Ownership",
    "RoutedArrival",
    "cut_drafts",
    "delete_intent",
    "read_arrivals",
    "read_intent",
    "take_ownership",
    "write_intent",
    "write_pointer",
]
