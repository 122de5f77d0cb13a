"""The arguments of the jobs are those that their version of Glue knows."""

from __future__ import annotations

from dataclasses import fields

import pytest

from infra.wheels import JobRuntime
from lake.resource_names import ResourceNames
from tests.unit.infra.conftest import Assembly

OWN = {"--region", "--settings", "--stream_shard", *(f"--{item.name}" for item in fields(ResourceNames))}
"""Arguments that only our own code reads."""
PARAMETERS = "https://docs.aws.amazon.com/glue/latest/dg/aws-glue-programming-etl-glue-arguments.html"
LIBRARIES = "https://docs.aws.amazon.com/glue/latest/dg/aws-glue-programming-python-libraries.html"
ENVIRONMENTS = "https://docs.aws.amazon.com/glue/latest/dg/aws-glue-programming-python-virtual-environments.html"
LOGGING = "https://docs.aws.amazon.com/glue/latest/dg/monitor-continuous-logging.html"
SCALING = "https://docs.aws.amazon.com/glue/latest/dg/auto-scaling.html"
SPARK_UI = "https://docs.aws.amazon.com/glue/latest/dg/monitor-spark-ui-jobs.html"
LAST = 6.0
"""The latest version of Glue that the sources speak of."""
KNOWN = {
    "--auto-scale-within-microbatch": (3.0, LAST, PARAMETERS),
    "--additional-python-modules": (2.0, LAST, LIBRARIES),
    "--conf": (0.9, LAST, PARAMETERS),
    "--continuous-log-logGroup": (0.9, 4.0, LOGGING),
    "--custom-logGroup-prefix": (5.0, LAST, LOGGING),
    "--enable-auto-scaling": (3.0, LAST, SCALING),
    "--enable-continuous-cloudwatch-log": (0.9, 4.0, LOGGING),
    "--enable-job-insights": (2.0, 3.0, PARAMETERS),
    "--enable-spark-ui-legacy-path": (0.9, LAST, SPARK_UI),
    "--extra-py-files": (0.9, LAST, PARAMETERS),
    "--job-language": (0.9, LAST, PARAMETERS),
    "--python-modules-installer-option": (2.0, LAST, LIBRARIES),
    "--python-virtual-env": (5.0, LAST, ENVIRONMENTS),
    "--python-virtual-env-storage-prefix": (6.0, LAST, ENVIRONMENTS),
    "--spark-event-logs-path": (0.9, LAST, SPARK_UI),
}
"""Argument -> first and last version of Glue that documents it, and where.

Looked up were the pages on libraries, virtual environments, logging and Spark's own pages; what the other two pages say
is assumed.
"""


def refused(arguments: set[str], version: float) -> set[str]:
    """Arguments that this version of Glue does not document; own ones are never refused."""
    return {name for name in arguments - OWN if not _documented(name, version)}


def _documented(name: str, version: float) -> bool:
    first, last, _ = KNOWN.get(name, (LAST, 0, ""))
    return first <= version <= last


@pytest.mark.parametrize(("stage", "jobs"), [("assembly", 2), ("other_assembly", 4)])
def test_the_jobs_pass_only_arguments_of_their_version(request: pytest.FixtureRequest, stage: str, jobs: int) -> None:
    assembly: Assembly = request.getfixturevalue(stage)
    found = assembly.resources("AWS::Glue::Job").values()
    assert len(found) == jobs
    for job in found:
        assert f"Glue {job['GlueVersion']}" == JobRuntime.glue().release
        assert refused(set(job["DefaultArguments"]), float(job["GlueVersion"])) == set()
