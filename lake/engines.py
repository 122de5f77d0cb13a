"""The engines that a run of the batch lane can use: the same code with the same arguments on each of them."""

from __future__ import annotations

from enum import StrEnum


class Engine(StrEnum):
    """How the state machine ``overnight`` starts a job run; the plan index names one for each run.

    How each is started, watched, stopped and billed, and where its logs are: docs/deploy.md, "Engines".
    """

    GLUE_FLEX = "glue-flex"
    """Glue's job with the execution class FLEX: spare capacity, for which a run may wait."""
    GLUE = "glue"
    """The same job with the execution class STANDARD."""
    EMR_SERVERLESS = "emr-serverless"
    """An EMR Serverless application of the stack, which is there only if the settings allow this engine."""

    @property
    def on_glue(self) -> bool:
        """Whether it is an execution class of Glue."""
        return self in (Engine.GLUE_FLEX, Engine.GLUE)
