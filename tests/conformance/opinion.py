"""What a second implementation said."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Opinion:
    """One implementation was asked the same questions as the one that the tests use every day."""

    name: str
    asked: str
    """What the questions were, as a sentence without its full stop."""
    questions: int
    known: Mapping[str, str]
    """Question on which the two are known to differ -> the reason."""
    different: Mapping[str, str] = field(default_factory=dict)
    """Question on which they differ -> how."""

    @property
    def agreed(self) -> int:
        return self.questions - len(self.different)

    def surprises(self) -> list[str]:
        """What has to be understood: each new difference, and each known one that is gone."""
        new = [f"{self.name}: {name}: {how}" for name, how in self.different.items() if name not in self.known]
        gone = [f"{self.name}: {name}: now they agree" for name in self.known if name not in self.different]
        return new + gone
