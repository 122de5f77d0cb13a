"""The resources of the stream lane's shards: a stage with one shard has what it always had."""

from __future__ import annotations

from typing import Any

from tests.unit.infra.conftest import Assembly, listed
from tests.unit.infra.resolved_template import ResolvedTemplate

JOB = "AWS::Glue::Job"


def streaming_jobs(assembly: Assembly) -> dict[str, dict[str, Any]]:
    """Properties by name."""
    jobs = assembly.resources(JOB).values()
    return {job["Name"]: job for job in jobs if job["Command"]["Name"] == "gluestreaming"}


def test_each_shard_has_a_job_that_knows_its_name(assembly: Assembly, other_assembly: Assembly) -> None:
    # Given one shard, Then its job is the one that a stage without shards has
    (job,) = streaming_jobs(assembly).items()
    assert job[0] == "hybrid-router-test-ny-stream"
    assert "--stream_shard" not in job[1]["DefaultArguments"]
    # Given three, Then the others are named after it, and have one run at a time as well
    jobs = streaming_jobs(other_assembly)
    arguments = {name: body["DefaultArguments"].get("--stream_shard") for name, body in jobs.items()}
    first = "hybrid-router-other-stream"
    assert arguments == {first: None, f"{first}-2": "2", f"{first}-3": "3"}
    assert {body["ExecutionProperty"]["MaxConcurrentRuns"] for body in jobs.values()} == {1}
    # And the arguments name the first job only: the names of the others follow from it
    assert {body["DefaultArguments"]["--stream_job"] for body in jobs.values()} == {first}


def test_functions_may_start_the_job_and_write_to_the_inbox_of_each_shard(other_assembly: Assembly) -> None:
    template = ResolvedTemplate(other_assembly.template)
    allowed: dict[str, set[str]] = {}
    for name, statement in other_assembly.statements():
        if name.startswith("RouterrouteRole"):
            for action in listed(statement["Action"]):
                resources = [str(template.value(resource)) for resource in listed(statement["Resource"])]
                allowed.setdefault(action, set()).update(resources)
    started = {resource.partition("-other-")[2] for resource in allowed["glue:StartJobRun"]}
    assert started == {"stream", "stream-2", "stream-3"}
    written = {resource.partition("/")[2] for resource in allowed["s3:PutObject"]}
    assert {"inbox/*", "inbox-2/*", "inbox-3/*"} <= written
