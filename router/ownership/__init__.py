"""Which manifest owns an arrival: exactly one, whichever process crashes or repeats a step.

============  ==========================================================================================
``take``      the whole protocol, in its order
``draft``     arrivals to drafts of manifests, pure
``record``    arrival rows written, each naming its manifest
``resolve``   rows that name another owner: duplicates, and arrivals to adopt from an abandoned manifest
``enqueue``   the manifest's document, its row, its pointer
``pointer``   one pointer in the stream's inbox
``outcome``   the outcome of each arrival
============  ==========================================================================================
"""

from router.ownership.draft import Draft, RoutedArrival, cut_drafts
from router.ownership.outcome import ArrivalOutcome, Ownership
from router.ownership.pointer import write_pointer
from router.ownership.resolve import OWNER_GRACE
from router.ownership.take import take_ownership

__all__ = [
    "OWNER_GRACE",
    "ArrivalOutcome",
    "Draft",
    "Ownership",
    "RoutedArrival",
    "cut_drafts",
    "take_ownership",
    "write_pointer",
]
