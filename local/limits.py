"""Quotas and delays of AWS that the local cloud also has; its owner may change the numbers while it runs."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

_FILE = "emulator/limits.json"


@dataclass(frozen=True, slots=True)
class Limits:
    """Quotas: the lowest defaults seen in an account; AWS's own pages differ (docs/deploy.md, Quotas)."""

    glue_runs: int = 50
    """Maximum number of concurrent Glue job runs, of all jobs (quota L-5E4153CA)."""
    glue_dpus: float = 500
    """Maximum number of DPUs of these runs together (quota L-08F3B322). A run counts with all of its workers: with auto
    scaling Glue may start it with fewer."""
    flex_capacity: bool = True
    """Whether AWS has spare capacity: without it a run of the class FLEX is WAITING."""
    flex_wait_minutes: float = 20
    """Time after which a WAITING run is FAILED (AWS Glue Developer Guide, "AWS Glue job run statuses")."""
    index_lag_seconds: float = 0.5
    """Delay of a global secondary index of DynamoDB after its table. AWS promises no bound; the value is assumed."""

    def write(self, state: Path) -> None:
        """Replace the file of the cloud in ``state`` at once: a reader sees these limits or the previous ones."""
        file = state / _FILE
        beside = file.with_suffix(".new")
        beside.write_text(json.dumps(asdict(self)))
        beside.replace(file)

    @classmethod
    def read(cls, state: Path) -> "Limits":
        """Return what ``write`` has written last."""
        return cls(**json.loads((state / _FILE).read_text()))
