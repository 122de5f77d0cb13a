"""What every engine needs to run the jobs of a stage."""

from __future__ import annotations

from dataclasses import dataclass

from infra.assets import Assets
from infra.names import StackNames
from lake.resource_names import ResourceNames
from lake.settings import Settings


@dataclass(frozen=True, slots=True)
class JobParts:
    """Settings, names and files, the same on all engines."""

    settings: Settings
    names: StackNames
    assets: Assets
    resources: ResourceNames
