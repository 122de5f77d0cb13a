"""Renews the leases of an attempt while its work goes on; a lost one stops the work."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from lake.errors import LeaseLostError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lake.ledger import Claim
    from transform.context import ConversionContext

RENEWALS_PER_LEASE = 4


class LeaseKeeper:
    """A context in which claims are renewed in the background.

    Parameters
    ----------
    on_all_lost
        Called in the background when no claim is held any more: the work has become useless.
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

    def stop_renewing(self, manifest: str) -> None:
        """No more renewals of this manifest: it is committed or given up."""
        with self._lock:
            self._claims.pop(manifest, None)

    def renew_all(self) -> None:
        """One round; a failing ledger is not yet a lost lease, the next round tries again."""
        manifests, clock = self._context.services.ledger.manifests, self._context.clock
        with self._lock:
            claims = list(self._claims.values())
        for claim in claims:
            try:
                manifests.renew(claim, clock(), self._lease)
            except LeaseLostError:
                with self._lock:
                    if self._claims.pop(claim.row.id, None) is not None:
                        self._lost.add(claim.row.id)
            except Exception:  # noqa: S112
                continue
        if self._lost and not self._claims:
            self._on_all_lost()

    def _renew(self) -> None:
        while not self._ended.wait(self._lease.total_seconds() / RENEWALS_PER_LEASE):
            self.renew_all()
