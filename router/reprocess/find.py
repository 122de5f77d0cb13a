"""From the request to the manifests that it is about."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lake.layout import MANIFESTS, manifest_day_prefix, manifest_of_key
from router.s3_uri import format_unknown_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import ThreadPoolExecutor

    from lake.ledger import ManifestRow
    from lake.manifest import ObjectVersion
    from router.reprocess.report import ReprocessReport
    from router.s3_uri import S3Uri
    from router.selection import Selection
    from router.services import Services


def find_by_file(
    services: Services, pool: ThreadPoolExecutor, uris: Iterable[S3Uri], report: ReprocessReport
) -> dict[str, set[ObjectVersion]]:
    """Every version of the keys that the ledger knows, by the manifest that its arrival row names."""
    files: dict[str, set[ObjectVersion]] = {}
    uris = list(uris)
    versions = pool.map(lambda uri: services.ledger.arrivals.versions(uri.bucket, uri.key), uris)
    for uri, arrivals in zip(uris, versions, strict=True):
        if not arrivals:
            report.add("unknown", format_unknown_file(str(uri)))
        for arrival in arrivals:
            if arrival.manifest is None:
                report.add("ignored", f"{uri} is IGNORED: {arrival.reason}")
            else:
                files.setdefault(arrival.manifest, set()).add(arrival.file)
    return files


def find_by_selection(
    services: Services, pool: ThreadPoolExecutor, selection: Selection, report: ReprocessReport, stop_at: datetime
) -> Iterator[list[ManifestRow]]:
    """Rows of the selection, a page of the documents' listing at a time, from ``report.after`` on until ``stop_at``.

    Keys of documents begin with the day on which the manifest was made, so the listing begins near the first hour of
    the selection. It is a hint: a document whose row does not exist never became a manifest. ``report.after`` moves on
    after the caller is done with a page, and is empty once all documents are listed.
    """
    after = report.after or _before(selection)
    while True:
        page = services.s3.list_objects_v2(Bucket=services.resources.control_bucket, Prefix=MANIFESTS, StartAfter=after)
        keys = [item["Key"] for item in page.get("Contents", [])]
        ids = [manifest for manifest in map(manifest_of_key, keys) if manifest is not None]
        rows = pool.map(services.ledger.manifests.get, ids)
        yield [row for row in rows if row is not None and selection.selects(row.partition)]
        report.after = after = keys[-1] if page["IsTruncated"] else ""
        if not after or services.clock() >= stop_at:
            return


def _before(selection: Selection) -> str:
    """A key before the first document that can belong to the selection.

    A manifest is made after its files arrive. One day more than enough, because the clocks of S3 and of the function
    that made it may differ.
    """
    if selection.first is None:
        return MANIFESTS
    return manifest_day_prefix(f"{datetime.fromisoformat(selection.first) - timedelta(days=1):%Y-%m-%d}")
