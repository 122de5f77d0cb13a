"""The scheduled verification exists only where a share of the manifests is verified."""

from __future__ import annotations

from tests.unit.infra.conftest import Assembly, listed

SCHEDULE = "AWS::Scheduler::Schedule"
MACHINE = "AWS::StepFunctions::StateMachine"


def actions_of(assembly: Assembly, role: str, resource: str) -> set[str]:
    """What a role may do with resources whose ARN contains ``resource``."""
    return {
        action
        for name, statement in assembly.statements()
        if name.startswith(role) and resource in str(statement.get("Resource"))
        for action in listed(statement["Action"])
    }


def test_nothing_of_it_is_created_without_a_share(assembly: Assembly) -> None:
    for kind in (SCHEDULE, MACHINE, "AWS::CloudWatch::Alarm", "AWS::IAM::Role"):
        assert not [name for name in assembly.resources(kind) if "Verify" in name], kind
    assert not actions_of(assembly, "JobsRole", "/verify/*")


def test_the_machine_may_run_the_batch_job_and_no_other(other_assembly: Assembly) -> None:
    allowed = actions_of(other_assembly, "MachinesVerifyRole", "job/")
    assert allowed == {"glue:StartJobRun", "glue:GetJobRun", "glue:GetJobRuns", "glue:BatchStopJobRun"}
    assert not actions_of(other_assembly, "MachinesVerifyRole", "-stream")


def test_the_job_may_list_the_input_and_write_what_was_found(other_assembly: Assembly) -> None:
    assert "s3:ListBucketVersions" in actions_of(other_assembly, "JobsRole", "landing-zone-1")
    assert actions_of(other_assembly, "JobsRole", "/verify/*") == {"s3:PutObject"}
