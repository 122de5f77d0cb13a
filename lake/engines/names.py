"""The names of the engines, as settings, plans and cost rows have them."""

from __future__ import annotations

from enum import StrEnum


class Engine(StrEnum):
    """Where a job run is; the plan index names one for each run of the batch lane."""

    GLUE_FLEX = "glue-flex"
    """Glue's job with the execution class FLEX: spare capacity, for which a run may wait."""
    GLUE = "glue"
    """Glue's job with the execution class STANDARD."""
    EMR_SERVERLESS = "emr-serverless"
    """An EMR Serverless application of the stack, which is there only if the settings allow this engine."""
