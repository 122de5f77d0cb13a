"""Some hours of a dataset: everything that arrived in them against everything that is published of them."""

from __future__ import annotations

import zlib
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lake.layout import parse_generation, partition_prefix
from lake.ledger import State
from lake.manifest import Identity
from lake.partition import Partition
from verify.find_files import find_files
from verify.manifest_check import CheckedManifest, check_manifest
from verify.report import Difference, HourReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lake.ledger import ManifestRow
    from lake.manifest import ObjectVersion
    from verify.stack import Hours, Stack

ROUTING_TIME = timedelta(minutes=30)
"""A younger file may still be in the arrivals queue."""


class HoursCheck:
    """Compares hours one after another; listings come first, ledger rows afterwards.

    Parameters
    ----------
    share
        Share of the manifests that are compared, chosen by their ids; 1: all.
    on_progress
        Called with a line of text for each manifest.
    """

    def __init__(self, stack: Stack, hours: Hours, share: float, on_progress: Callable[[str], None]) -> None:
        self._stack = stack
        self._hours = hours
        self._share = share
        self._on_progress = on_progress
        self._owners: dict[Identity, str] = {}

    def run(self) -> Iterator[HourReport]:
        """The report of each hour, in order.

        Raises
        ------
        ClientError, BotoCoreError
            S3 or the ledger refused a request or did not answer.
        """
        objects = {stamp: list(self._listed(stamp)) for stamp in self._hours.stamps()}
        found = find_files(self._stack, self._hours)
        named = {parsed[0] for uris in objects.values() for uri in uris if (parsed := parse_generation(uri))}
        rows = {
            manifest: self._stack.ledger.manifests.get(manifest) for manifest in sorted(named | set(found.by_manifest))
        }
        for stamp, uris in objects.items():
            report = HourReport(hour=stamp)
            for hour, file in found.unknown:
                if hour == stamp:
                    self._report_unknown(report, file)
            partition = self._partition(stamp)
            ours = {manifest: row for manifest, row in rows.items() if row is not None and row.partition == partition}
            checked = {}
            for manifest, row in ours.items():
                outcome = self._check(report, row)
                if outcome is not None:
                    checked[manifest] = outcome
                    self._check_owners(report, manifest, outcome, found.by_manifest.get(manifest, set()))
            for uri in uris:
                self._check_object(report, uri, ours, checked)
            yield report

    def _partition(self, stamp: str) -> Partition:
        date, _, hour = stamp.partition("T")
        return Partition(self._hours.dataset, date, int(hour))

    def _listed(self, stamp: str) -> Iterator[str]:
        """URIs of all objects that readers see of an hour, lake and quarantine."""
        for bucket in self._stack.resources.output_buckets:
            pages = self._stack.s3.get_paginator("list_objects_v2").paginate(
                Bucket=bucket, Prefix=partition_prefix(self._partition(stamp))
            )
            for page in pages:
                for item in page.get("Contents", []):
                    yield f"s3://{bucket}/{item['Key']}"

    def _report_unknown(self, report: HourReport, file: ObjectVersion) -> None:
        problem = "is in the input bucket, and the ledger does not know it"
        if self._stack.clock() - datetime.fromisoformat(file.arrived_at) < ROUTING_TIME:
            report.cannot_be_proven(f"{file.uri} (version {file.version}) {problem} yet")
        else:
            report.differs(Difference(file.uri, f"{problem}: run a backfill of this hour", file.version))

    def _check(self, report: HourReport, row: ManifestRow) -> CheckedManifest | None:
        """The comparison of a manifest; None: it has published nothing, or is not in the share."""
        if row.state in (State.SUPERSEDED, State.ABANDONED) and row.published is None:
            return None
        report.manifests += 1
        if row.published is None:
            reason = f": {row.reason}" if row.reason else ""
            report.cannot_be_proven(f"manifest {row.id} is {row.state} and has published nothing{reason}")
            return None
        if zlib.crc32(row.id.encode()) >= self._share * (1 << 32):
            return None
        self._on_progress(f"{report.hour}: manifest {row.id}, {row.files:,} files, {row.bytes / 1e6:,.1f} MB")
        outcome = check_manifest(self._stack.s3, self._stack.resources, self._stack.max_line_bytes, row)
        report.add(outcome.report)
        return outcome

    def _check_owners(
        self, report: HourReport, manifest: str, outcome: CheckedManifest, arrived: set[ObjectVersion]
    ) -> None:
        """Every file that arrived is in the manifest that the ledger names, and no file is in two."""
        if not outcome.objects and not outcome.files:
            return
        for file in sorted(arrived):
            if Identity.of(file) not in outcome.files:
                report.differs(Difference(file.uri, f"is not in manifest {manifest}, its owner", file.version))
        for identity in sorted(outcome.files):
            other = self._owners.setdefault(identity, manifest)
            if other != manifest:
                uri = f"s3://{identity.bucket}/{identity.key}"
                problem = f"was published twice, by the manifests {other} and {manifest}"
                report.differs(Difference(uri, problem, identity.version))

    def _check_object(
        self, report: HourReport, uri: str, rows: dict[str, ManifestRow], checked: dict[str, CheckedManifest]
    ) -> None:
        """Readers see every object under the hour's prefix: each must be one that its manifest has published."""
        manifest, generation = parse_generation(uri) or ("", 0)
        row = rows.get(manifest)
        if row is None:
            report.differs(Difference(uri, "is an object that no manifest of this hour has written: readers see it"))
            return
        published = 0 if row.published is None else row.published.generation
        if generation < published:
            report.cannot_be_proven(f"{uri} was replaced by generation {published}: the sweep deletes it after a while")
        elif generation > published:
            if row.state != State.PUBLISHING:
                report.differs(Difference(uri, f"is visible, and its generation {generation} was never published"))
        elif manifest in checked and uri not in checked[manifest].objects:
            report.differs(Difference(uri, "is not in the commit document of its manifest: readers see it"))
