"""EMR Serverless in the template: only where a setting allows it, bounded, and with the permissions of its runs."""

from pathlib import Path

import pytest

from infra import assets
from infra.synth import synth
from lake.settings import BatchSettings, EmrSettings, Settings
from local.engines.emr_serverless import Capacity, needed_capacity, spark_properties
from tests.unit.infra.conftest import Assembly
from tests.unit.infra.resolved_template import ResolvedTemplate

MAX_PARAMETERS = 102_400
"""Characters of sparkSubmitParameters (EMR Serverless API Reference, SparkSubmit)."""
APPLICATION = "AWS::EMRServerless::Application"
WATCHERS = {"Routerplan", "Routerrunstatus", "Routersweep", "Jobs", "Emr"}
"""The roles of the code that asks whether the holder of a lease has ended."""


def actions_by_role(assembly: Assembly) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for role, action, _ in assembly.grants():
        if action.startswith("emr-serverless:"):
            found.setdefault(role, set()).add(action.partition(":")[2])
    return found


def test_without_the_engine_nothing_is_created_or_allowed(assembly: Assembly) -> None:
    assert assembly.resources(APPLICATION) == {}
    assert actions_by_role(assembly) == {}
    assert not [name for name in assembly.template["Resources"] if name.startswith("Emr")]


def test_a_run_has_the_workers_of_the_settings(other_assembly: Assembly) -> None:
    # Given what the state machine passes
    machine = other_assembly.one("AWS::StepFunctions::StateMachine", "MachinesOvernight")
    parameters = machine["DefinitionSubstitutions"]["EmrSparkSubmitParameters"]
    text = "".join(part for part in parameters["Fn::Join"][1] if isinstance(part, str))
    # When the service reads it, with the workers of a plan
    text += " --conf spark.dynamicAllocation.maxExecutors=4"
    properties = spark_properties(
        {"jobDriver": {"sparkSubmit": {"entryPoint": "main.py", "sparkSubmitParameters": text}}}
    )
    # Then there are 5 workers of a size that it has, with as much outside of the heap as on Glue
    assert needed_capacity(properties) == Capacity(vcpus=40, gigabytes=160)
    assert (properties["spark.executor.memory"], properties["spark.executor.memoryOverhead"]) == ("20g", "12g")
    assert properties["spark.speculation"] == "true"


def test_a_deployed_run_unpacks_its_libraries_and_has_them_on_its_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Given a deployment with wheels and libraries
    wheels, libraries = tmp_path / "made.gluewheels.zip", tmp_path / "libraries.zip"
    for file in (wheels, libraries):
        file.write_bytes(file.name.encode())
    monkeypatch.setattr(assets, "check_wheels", lambda _checkout, _runtime, _file=None: wheels)
    monkeypatch.setattr(assets, "unpack", lambda _wheels, _target: libraries)
    emr = EmrSettings(architecture="arm64")
    settings = Settings(stage="real", batch=BatchSettings(engines=("emr-serverless",)), emr=emr)
    # When it is synthesized
    deployed = Assembly(synth(settings, tmp_path / "out", wheels=wheels), settings)
    machine = ResolvedTemplate(deployed.template).resources
    values = next(body for name, body in machine.items() if name.startswith("MachinesOvernightMachine"))
    parameters = values["DefinitionSubstitutions"]["EmrSparkSubmitParameters"]
    # Then the driver and the executors get the archive of their processor
    assert deployed.one(APPLICATION, "Emr")["Architecture"] == "ARM64"
    properties = spark_properties(
        {"jobDriver": {"sparkSubmit": {"entryPoint": "main.py", "sparkSubmitParameters": parameters}}}
    )
    uri, _, folder = properties["spark.archives"].partition("#")
    assert uri.endswith(".zip")
    assert uri != properties["spark.submit.pyFiles"]
    for name in ("spark.emr-serverless.driverEnv.PYTHONPATH", "spark.executorEnv.PYTHONPATH"):
        assert properties[name] == f"./{folder}"
    # And the parameters are not longer than the service takes
    assert len(parameters) < MAX_PARAMETERS


def test_only_the_machine_starts_runs_and_only_lease_take_over_watches_them(other_assembly: Assembly) -> None:
    expected = {role: {"GetJobRun"} for role in WATCHERS}
    expected["MachinesOvernight"] = {"StartJobRun", "GetJobRun", "CancelJobRun"}
    assert actions_by_role(other_assembly) == expected


def test_a_run_may_do_what_glues_batch_job_does_and_nothing_of_the_stream(other_assembly: Assembly) -> None:
    # Given the statements of both roles, without those for their own service and log groups
    def of(role: str) -> set[tuple[str, str]]:
        return {
            (action, resource)
            for name, action, resource in other_assembly.grants()
            if name == role and not action.startswith("logs:")
        }

    # Then what Glue's role has besides is the inbox, and what a verification needs
    assert of("Emr") < of("Jobs")
    more = {resource for _, resource in of("Jobs") - of("Emr")}
    assert all(
        any(part in resource for part in ("/inbox", "/verify", "/divisions", "Ledger", "landing-zone-1"))
        for resource in more
    ), more
