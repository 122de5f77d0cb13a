"""Manifests that a job run was denied: the job runs of the same execution that follow leave them out."""

from __future__ import annotations

from collections.abc import Iterable

from botocore.exceptions import BotoCoreError, ClientError

from lake.manifest_documents import read_denied, write_denied
from lake.texts import format_count
from transform.task_model import ConversionContext


class DeniedManifests:
    """The list of the run document at a URI. An error is only logged: without the list everything is tried again."""

    def __init__(self, context: ConversionContext, run: str) -> None:
        self._context, self._run = context, run
        self._s3, self._bucket = context.services.s3, context.services.resources.control_bucket
        self._denied: frozenset[str] = frozenset()

    def leave_out(self, manifests: list[str]) -> list[str]:
        """The manifests that no earlier job run was denied; all of them if there is no other one."""
        try:
            self._denied = read_denied(self._s3, self._bucket, self._run)
        except Exception as error:
            self._context.log(f"what earlier job runs were denied could not be read, nothing is left out: {error}")
        others = [manifest for manifest in manifests if manifest not in self._denied]
        if not others or len(others) == len(manifests):
            return manifests
        number = format_count(len(manifests) - len(others), "manifest is", "manifests are")
        self._context.log(f"{number} left out, which an earlier job run of this execution was denied")
        return others

    def record(self, manifests: Iterable[str]) -> None:
        denied = self._denied.union(manifests)
        if denied == self._denied:
            return
        try:
            write_denied(self._s3, self._bucket, self._run, denied)
        except (BotoCoreError, ClientError) as error:
            self._context.log(f"what this job run was denied could not be recorded, it is tried again: {error}")
