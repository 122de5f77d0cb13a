"""A deployment while jobs run: what they were started with stays readable to them, and to no other stack's jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.synth import synth
from lake.settings import Settings, StreamSettings
from tests.unit.infra.conftest import Assembly
from tests.unit.infra.resolved_template import ResolvedTemplate
from tests.unit.infra.service_edges import Edge, Policies, edges


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("versions")


def deployed(folder: Path, settings: Settings) -> ResolvedTemplate:
    return ResolvedTemplate(Assembly(synth(settings, folder), settings).template)


def files_of_jobs(template: ResolvedTemplate) -> list[Edge]:
    """The reads of script, code and settings of both jobs."""
    return [edge for edge in edges(template) if edge.service == "glue.amazonaws.com" and edge.action == "s3:GetObject"]


def test_a_deployment_leaves_running_jobs_their_files(folder: Path) -> None:
    # Given two versions of a stage whose settings differ, and a stage next to it.
    old = deployed(folder / "old", Settings(stage="prod"))
    new = deployed(folder / "new", Settings(stage="prod", stream=StreamSettings(trigger_seconds=31)))
    other = deployed(folder / "other", Settings(stage="prod2"))
    asked = {edge.resource for edge in files_of_jobs(old)}
    assert asked != {edge.resource for edge in files_of_jobs(new)}
    assert len(asked) == 4
    # When the new version is deployed, its role may read every file of the old one's arguments.
    assert all(Policies.of(new).allow(edge) for edge in files_of_jobs(old))
    # And the same after a rollback.
    assert all(Policies.of(old).allow(edge) for edge in files_of_jobs(new))
    # But it may read no file of another stage.
    assert not any(Policies.of(new).allow(edge) for edge in files_of_jobs(other))
