"""The list of what job runs were denied is a hint: without it nothing is left out, and its errors end no job run."""

from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError

from batch_job.main import DeniedManifests
from lake.layout import denial_key
from lake.manifest_documents import read_denied
from tests.unit.lake.world import RESOURCES, World

RUN = "s3://control/plans/night/runs/00002.json"
DENIED = ClientError({"Error": {"Code": "AccessDenied", "Message": "denied"}}, "PutObject")


def job_run(s3: Any) -> tuple[DeniedManifests, list[str]]:
    """The list as a job run uses it, and the log of the run."""
    lines: list[str] = []
    context: Any = SimpleNamespace(services=SimpleNamespace(s3=s3, resources=RESOURCES), log=lines.append)
    return DeniedManifests(context, RUN), lines


def test_what_one_job_run_was_denied_the_next_ones_leave_out(world: World) -> None:
    for given, tried, denied in (("abc", "abc", "a"), ("abc", "bc", "b"), ("abc", "c", "")):
        job, _ = job_run(world.raw_s3)
        assert job.leave_out(list(given)) == list(tried)
        job.record(denied)
    assert read_denied(world.raw_s3, "control", RUN) == {"a", "b"}
    # And a run of which nothing else is left tries everything: a person has started it.
    job, lines = job_run(world.raw_s3)
    assert job.leave_out(["a", "b"]) == ["a", "b"]
    assert lines == []


def test_a_list_that_cannot_be_used_leaves_nothing_out(world: World) -> None:
    world.raw_s3.put_object(Bucket="control", Key=denial_key("plans/night/runs/00002.json"), Body=b"{")
    job, lines = job_run(world.raw_s3)
    assert job.leave_out(["a", "b"]) == ["a", "b"]
    assert "nothing is left out" in lines[0]


def test_a_list_that_cannot_be_written_is_said(world: World) -> None:
    def refuse(**_: Any) -> None:
        raise DENIED

    s3: Any = SimpleNamespace(get_object=world.raw_s3.get_object, exceptions=world.raw_s3.exceptions, put_object=refuse)
    job, lines = job_run(s3)
    assert job.leave_out(["a"]) == ["a"]
    job.record([])
    assert lines == []
    job.record(["a"])
    assert "could not be recorded, it is tried again" in lines[0]
