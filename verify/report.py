"""The findings of a verification: differences, what cannot be proven, and the outcome of each hour."""

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from lake.texts import format_count

MAX_DIFFERENCES = 20
"""Maximum number of differences, and of unproven things, that are kept per manifest and per hour."""


class HourOutcome(StrEnum):
    PROVEN = "proven"
    """The lake and the quarantine hold exactly the content of the input files."""
    DIFFERS = "differs"
    UNPROVEN = "cannot be proven"
    """Nothing differs, but something could not be compared."""
    NOT_COMPARED = "not compared"
    """None of its manifests is in the share."""


@dataclass(frozen=True, slots=True)
class Difference:
    uri: str
    """An input file, or an object of the lake or the quarantine."""
    problem: str
    """Rest of a sentence that begins with the URI."""
    version: str | None = None
    line: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        version = f" (version {self.version})" if self.version else ""
        line = f", line {self.line:,} at byte {self.offset:,}" if self.line is not None else ""
        return f"{self.uri}{version}{line}: {self.problem}"


@dataclass(slots=True)
class ManifestReport:
    files: int = 0
    rows: int = 0
    rejects: int = 0
    whole_files: int = 0
    """Files that are in the quarantine by reference, because they could not be read to their end."""
    differences: list[Difference] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)

    def differs(self, difference: Difference) -> None:
        if len(self.differences) < MAX_DIFFERENCES:
            self.differences.append(difference)

    def cannot_be_proven(self, reason: str) -> None:
        # Each part of a collection gives the same reason.
        if reason not in self.unproven and len(self.unproven) < MAX_DIFFERENCES:
            self.unproven.append(reason)

    def merge(self, report: "ManifestReport") -> None:
        for name in ("files", "rows", "rejects", "whole_files"):
            setattr(self, name, getattr(self, name) + getattr(report, name))
        for difference in report.differences:
            self.differs(difference)
        for reason in report.unproven:
            self.cannot_be_proven(reason)


@dataclass(slots=True)
class HourReport(ManifestReport):
    """One hour of a dataset: the sum over its manifests, and findings without a manifest."""

    hour: str = ""
    manifests: int = 0
    compared: int = 0
    """Number of manifests that were compared; fewer than all with a share."""
    missed: int = 0
    """Number of manifests in the share that were not compared, because of time or an error."""

    @property
    def outcome(self) -> HourOutcome:
        """The outcome; a difference has priority over something that could not be compared."""
        if self.differences:
            return HourOutcome.DIFFERS
        if self.unproven:
            return HourOutcome.UNPROVEN
        return HourOutcome.NOT_COMPARED if self.manifests and not self.compared else HourOutcome.PROVEN

    @property
    def is_empty(self) -> bool:
        return not (self.manifests or self.differences or self.unproven)

    def __str__(self) -> str:
        partial = (
            f" ({self.compared:,} of {format_count(self.manifests, 'manifest')})"
            if self.compared < self.manifests
            else ""
        )
        counts = ", ".join(
            format_count(number, noun)
            for number, noun in ((self.files, "file"), (self.rows, "row"), (self.rejects, "rejected line"))
        )
        whole = f", {format_count(self.whole_files, 'file')} quarantined as a whole" if self.whole_files else ""
        return f"{self.hour}  {self.outcome}{partial}: {counts}{whole}"

    def to_json(self) -> dict[str, Any]:
        return {"hour": self.hour, "outcome": self.outcome, **asdict(self)}
