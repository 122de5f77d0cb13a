"""What owns an arrival: exactly one manifest or part, whichever process crashes or repeats a step.

============  ==========================================================================================
``take``      the whole protocol, in its order
``intent``    what an invocation is about to own, for the sweep in case it crashes
``known``     arrivals that have an owner, found by reading before anything is written
``expired``   arrivals so old that their rows may have been deleted
``draft``     arrivals to drafts of manifests and parts, pure
``record``    arrival rows written, each naming its owner
``resolve``   rows that exist already: duplicates, and arrivals to adopt
``enqueue``   the document of a stream lane's manifest, its row, its pointer
``collect``   a part's document, its place in the collection of its hour
``pointer``   one pointer in the stream's inbox
``outcome``   the outcome of each arrival
============  ==========================================================================================
"""

from router.ownership.draft import Draft, RoutedArrival, cut_drafts
from router.ownership.intent import Intent, delete_intent, read_intent, write_intent
from router.ownership.known import read_arrivals
from router.ownership.outcome import ArrivalOutcome, Ownership
from router.ownership.pointer import write_pointer
from router.ownership.resolve import OWNER_GRACE
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
