"""What owns an arrival: exactly one manifest or part, whichever process crashes or repeats a step.

============  ==========================================================================================
``take``      the whole protocol, in its order
``intent``    what an invocation is about to own, for the sweep in case it crashes
``limits``    arrivals that are not taken: their rows may have been deleted, or there are too many datasets
``draft``     arrivals to drafts of manifests and parts, pure
``record``    arrival rows written, each naming its owner
``resolve``   rows that exist already: duplicates, and arrivals to adopt
``owner``     documents, rows and pointers of manifests; documents of parts, in the collection of their hour
``outcome``   the outcome of each arrival
============  ==========================================================================================
"""

from router.ownership.outcome import ArrivalOutcome, Ownership
from router.ownership.owner import Draft, RoutedArrival, cut_drafts, write_pointer
from router.ownership.resolve import OWNER_GRACE, Intent, delete_intent, read_arrivals, read_intent, write_intent
from router.ownership.take import take_ownership

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
