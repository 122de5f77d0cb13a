"""How a run of a streaming job is started on EMR Serverless: what the stack knows, and the request for one run."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from lake.errors import InvalidInputError
from lake.shards import FIRST_SHARD

STREAMING = "STREAMING"
"""The mode of a run that has no end of its own (EMR Serverless API reference, StartJobRun)."""
STREAM_LAUNCH = "STREAM_LAUNCH"
"""The environment variable of the functions that start a streaming run on EMR Serverless."""
SHARD_ARGUMENT = "stream_shard"
"""The argument with the name of the job's shard; a job without it is that of the first one."""
NO_RETRIES = 1
"""Failed attempts in an hour after which EMR Serverless tries a streaming run no more: one means no retries (Amazon EMR
Serverless User Guide, "Job resiliency"). Another attempt would have the id of the first one, by which manifests are
held; ``stream_control`` starts another run."""


@dataclass(frozen=True, slots=True)
class StreamLaunch:
    """What the stack passes to the functions that start a streaming run, in their environment."""

    application: str
    """Id of the application."""
    role: str
    """ARN of the role of its runs."""
    entry_point: str
    """S3 URI of the script."""
    arguments: str
    """Arguments of the script, with a space between two; none of them contains one."""
    spark_submit_parameters: str
    timeout_minutes: int
    """After this time EMR Serverless cancels a run."""
    log_group: str
    log_uri: str = ""
    """Where event logs are stored in addition; empty: nowhere."""
    keeps_event_logs: bool = True
    """Whether EMR Serverless keeps event logs for its own Spark UI."""

    def to_text(self) -> str:
        """The inverse of ``from_text``."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> StreamLaunch:
        """The inverse of ``to_text``; raises ``InvalidInputError``."""
        try:
            return cls(**json.loads(text))
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"the environment variable {STREAM_LAUNCH} cannot be read ({error}): deploy the stack again, it sets it"
            ) from error

    def request(self, shard: str, name: str, token: str) -> dict[str, Any]:
        """The parameters of StartJobRun for the job ``name`` of a shard. Pure.

        ``token`` is the client token: a repeated request finds the run of the first one.
        """
        own = [] if shard == FIRST_SHARD else [f"--{SHARD_ARGUMENT}", shard]
        monitoring: dict[str, Any] = {
            "cloudWatchLoggingConfiguration": {"enabled": True, "logGroupName": self.log_group},
            "managedPersistenceMonitoringConfiguration": {"enabled": self.keeps_event_logs},
        }
        if self.log_uri:
            monitoring["s3MonitoringConfiguration"] = {"logUri": self.log_uri}
        return {
            "applicationId": self.application,
            "clientToken": token,
            "executionRoleArn": self.role,
            "name": name,
            "mode": STREAMING,
            "retryPolicy": {"maxFailedAttemptsPerHour": NO_RETRIES},
            "executionTimeoutMinutes": self.timeout_minutes,
            "jobDriver": {
                "sparkSubmit": {
                    "entryPoint": self.entry_point,
                    "entryPointArguments": [*self.arguments.split(" "), *own],
                    "sparkSubmitParameters": self.spark_submit_parameters,
                }
            },
            "configurationOverrides": {"monitoringConfiguration": monitoring},
        }


def stream_log_group(stack: str) -> str:
    """The log group of the streaming runs of a stack on EMR Serverless."""
    return f"/aws/emr-serverless/{stack}/stream"
