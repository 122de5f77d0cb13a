"""What Glue runs for a job: script, modules, arguments and Spark's properties, from the job and the request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from local.job_launch import JobLaunch

if TYPE_CHECKING:
    from collections.abc import Mapping


def merged_arguments(job: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, str]:
    """The run's arguments as Glue merges them: NonOverridableArguments win over the run's, those over the defaults."""
    layers = (job.get("DefaultArguments"), request.get("Arguments"), job.get("NonOverridableArguments"))
    return {str(key): str(value) for layer in layers for key, value in (layer or {}).items()}


def glue_launch(job: Mapping[str, Any], run: Mapping[str, Any]) -> JobLaunch:
    """What a run of the job starts; ``run`` is its record."""
    arguments: dict[str, str] = run["Arguments"]
    words = ["--JOB_NAME", str(run["JobName"]), "--JOB_RUN_ID", str(run["Id"])]
    words += [part for pair in arguments.items() for part in pair]
    # The value of Glue's only --conf argument holds several settings as "a=1 --conf b=2".
    properties = (part.strip().partition("=") for part in arguments.get("--conf", "").split("--conf") if "=" in part)
    return JobLaunch(
        script=job["Command"]["ScriptLocation"],
        modules=tuple(uri.strip() for uri in arguments.get("--extra-py-files", "").split(",") if uri.strip()),
        spark={key: value for key, _, value in properties},
        arguments=tuple(words),
        environment={},
        event_logs=_event_logs(arguments),
    )


def _event_logs(arguments: Mapping[str, str]) -> str:
    """Where a history server finds them; without the "legacy" path Glue stores them for its own console only."""
    kept = arguments.get("--enable-spark-ui-legacy-path") == "true"
    return arguments.get("--spark-event-logs-path", "") if kept else ""
