"""What engines bill: DPUs, vCPUs and GB of memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Units:
    """An amount of each unit that an engine bills; one that it does not bill is 0.

    A worker has some, an hour of each has a price, and a run has used them for a time.
    """

    dpu: float = 0.0
    vcpu: float = 0.0
    gb: float = 0.0

    def __add__(self, other: Units) -> Units:
        return Units(self.dpu + other.dpu, self.vcpu + other.vcpu, self.gb + other.gb)

    def times(self, number: float) -> Units:
        """Each amount multiplied by ``number``."""
        return Units(self.dpu * number, self.vcpu * number, self.gb * number)

    def at(self, prices: Units) -> float:
        """The price of these amounts, by the price of one of each."""
        return self.dpu * prices.dpu + self.vcpu * prices.vcpu + self.gb * prices.gb
