"""Renews the leases of attempts while their work goes on; the work stops when all leases are lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from lake.errors import LeaseLostError

if TYPE_CHECKING:
    from lake.ledger import Claim
    from transform.context import ConversionContext

RENEWALS_PER_LEASE = 4
"""Two renewals in a row may fail, the third is still in time."""


class LeaseKeeper:
    """A context manager that renews claims in the background.

    Parameters
    ----------
    on_all_lost
        Called in the background, more than once, when claims were lost and none is left: the work is of no use now.
    """

    def __init__(
        self,
        context: ConversionContext,
        claims: Iterable[Claim],
        on_all_lost: Callable[[], None],
    ) -> None:
        self._context = context
        self._claims = {claim.row.id: claim for claim in claims}
        self._lease = timedelta(seconds=context.services.settings.batch.lease_seconds)
        self._on_all_lost = on_all_lost
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._renew_repeatedly, name="lease-keeper", daemon=True)
        self._lost: set[str] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def lost(self, manifest: str) -> bool:
        """Whether the lease of this manifest was lost: another run may have taken it over."""
        return manifest in self._lost

    def stop_renewing(self, manifest: str) -> None:
        """No more renewals of this manifest: it is committed or given up."""
        with self._lock:
            self._claims.pop(manifest, None)

    def renew_all(self) -> None:
        """Renew every claim once. A claim whose renewal got no answer is not lost: the next round tries it again."""
        manifests, clock = self._context.services.ledger.manifests, self._context.clock
        with self._lock:
            claims = list(self._claims.values())
        unanswered: list[str] = []
        for claim in claims:
            try:
                manifests.renew(claim, clock(), self._lease)
            except LeaseLostError:
                with self._lock:
                    if self._claims.pop(claim.row.id, None) is not None:
                        self._lost.add(claim.row.id)
            except Exception as error:
                # Whatever the error: without this thread the other claims would not be renewed either.
                unanswered.append(f"{claim.row.id}: {type(error).__name__}: {error}")
        if unanswered:
            self._context.log(
                f"{len(unanswered)} of {len(claims)} leases were not renewed (first: {unanswered[0]}); the next try "
                f"is in {self._interval:g} s, each lease ends {self._lease.total_seconds():g} s after its last renewal"
            )
        if self._lost and not self._claims:
            self._on_all_lost()

    @property
    def _interval(self) -> float:
        """Seconds between two rounds."""
        return self._lease.total_seconds() / RENEWALS_PER_LEASE

    def _renew_repeatedly(self) -> None:
        while not self._ended.wait(self._interval):
            self.renew_all()
