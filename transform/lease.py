"""Renews the leases of an attempt while its work goes on; a lost one stops the work."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

from lake.errors import LeaseLostError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime, timedelta

    from lake.ledger import Claim
    from lake.ledger.manifests import Manifests

RENEWALS_PER_LEASE = 4


class LeaseKeeper:
    """A context in which claims are renewed in the background.

    Parameters
    ----------
    lease
        How long a renewal lasts; it is repeated four times as often.
    all_lost
        Called once, from the background, when no claim is held any more: the work has become useless.
    """

    def __init__(
        self,
        manifests: Manifests,
        claims: Iterable[Claim],
        lease: timedelta,
        clock: Callable[[], datetime],
        all_lost: Callable[[], None],
    ) -> None:
        self._manifests = manifests
        self._claims = {claim.row.id: claim for claim in claims}
        self._lease = lease
        self._clock = clock
        self._all_lost = all_lost
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._renew, name="lease-keeper", daemon=True)
        self._lost: set[str] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def lost(self, manifest: str) -> bool:
        """Whether another run may have taken this manifest over."""
        return manifest in self._lost

    def settle(self, manifest: str) -> None:
        """No more renewals of this one: it is committed or given up."""
        with self._lock:
            self._claims.pop(manifest, None)

    def renew_all(self) -> None:
        """One round; a failing ledger is not yet a lost lease, the next round tries again."""
        with self._lock:
            claims = list(self._claims.values())
        for claim in claims:
            try:
                self._manifests.renew(claim, self._clock(), self._lease)
            except LeaseLostError:
                with self._lock:
                    if self._claims.pop(claim.row.id, None) is not None:
                        self._lost.add(claim.row.id)
            except Exception:  # noqa: S112
                continue
        if self._lost and not self._claims:
            self._all_lost()

    def _renew(self) -> None:
        while not self._ended.wait(self._lease.total_seconds() / RENEWALS_PER_LEASE):
            self.renew_all()
