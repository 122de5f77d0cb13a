"""The cost of a conversion in addition to its job runs, by the number of files, manifests and objects. Pure.

It covers requests, ledger, functions and storage. Completed conversions (``hybrid-router cost``) and planned or
simulated ones are estimated by the same units.

Prices are list prices of us-east-1, looked up in 2026 on the pricing page of each service; ``Units`` documents the
numbers of requests.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lake.engines.description import GIB
from lake.ledger import CostRow, CostShare, ManifestRow
from lake.manifest import INFLATED_RATIO, Lane

S3_WRITE = 0.005 / 1000
"""Dollars for a PUT, POST or LIST (Amazon S3 pricing, S3 Standard)."""
S3_READ = 0.0004 / 1000
"""Dollars for a GET or HEAD (the same page)."""
S3_GB_MONTH = 0.023
"""Dollars for a GB (2^30 bytes) stored for a month, within the first 50 TB (the same page)."""
LEDGER_WRITE = 0.625 / 1_000_000
"""Dollars for a write request unit (Amazon DynamoDB pricing, on demand)."""
LEDGER_READ = 0.125 / 1_000_000
"""Dollars for a read request unit (the same page)."""
LEDGER_GB_MONTH = 0.25 + 0.20
"""Dollars for a GB stored for a month, including its point-in-time recovery (the same page)."""
EVENT = 1.00 / 1_000_000
"""Dollars for an event that the product sends (Amazon EventBridge pricing)."""
QUEUE_REQUEST = 0.40 / 1_000_000
"""Dollars for a request to a standard queue (Amazon SQS pricing)."""
FUNCTION_GB_SECOND = 0.0000133334
"""Dollars for a GB-second on Arm (AWS Lambda pricing)."""
OUTPUT_RATIO = 0.2
"""Parquet bytes for each byte of NDJSON (measured: 0.21; docs/performance.md, flat)."""
READ_BYTES = 8 << 20
"""Bytes of input that one GET reads: ``CHUNK_BYTES`` of transform/source.py."""


@dataclass(frozen=True, slots=True)
class Units:
    """Numbers of requests, as in tests/load/test_request_counts.py, which has them as upper limits."""

    writes_of_file: int = 1
    """Write units of the ledger for a file."""
    reads_of_file: int = 8
    """The sweep reads the file's row in each listing of its two days (``LISTING_DAYS``), by default four a day."""
    s3_writes_of_file: float = 0.016
    """These listings have 1,000 files on a page, and also list the folders of two more days."""
    ledger_bytes_of_file: int = 550
    """A row of 450 bytes, and the 100 bytes that DynamoDB adds to each item."""
    queue_requests_of_file: float = 1.2
    """One request sends the event; ten events are received and deleted together."""
    files_of_invocation: int = 50
    """Assumed if invocations of ``route`` are not counted: 56 files a second, five pollers with windows of 5 s."""
    writes_of_invocation: int = 7
    """Write units of its part; fewer if it owns a manifest of the stream lane."""
    reads_of_invocation: int = 3
    s3_writes_of_invocation: int = 2
    """The intent, and the document of the part or the pointer to the manifest."""
    s3_reads_of_invocation: int = 1
    gb_seconds_of_invocation: float = 0.4
    """Used with 1 GiB, plus 0.005 for each file. Measured once, on 2026-11-26, by a warm process and the stand-in of
    ``make bench-plan`` on a busy machine: 0.4 to 0.9 s for 28 to 55 files, 3.4 to 7.2 s for 1,000."""
    gb_seconds_of_file: float = 0.008
    """0.005 in ``route``, and the rest in the sweep's listings (docs/performance.md)."""
    writes_of_manifest: int = 21
    """Write units: 8 to own it (in a transaction they count twice), 9 to convert it, 4 to announce its hour, as if each
    hour had one manifest."""
    reads_of_manifest: int = 11
    writes_of_waiting_manifest: int = 2
    """Additional write units of a batch lane's manifest: its hour records that it waits for this manifest."""
    reads_of_waiting_manifest: int = 62
    """Additional read units for a wait of half a day: 48 sweeps read its row and list its hour (6), plans list it (2),
    and the last check reads the whole hour (6). Counted in a day of 20 datasets, as if each hour had one manifest."""
    s3_writes_of_manifest: int = 4
    """Its document, commit document and result document, and the marker of its hour."""
    s3_reads_of_manifest: int = 5
    s3_writes_of_object: int = 3
    """The upload is created, has one part, and is completed."""
    s3_reads_of_object: int = 1
    s3_writes_of_pointer: int = 1
    s3_writes_of_stream_second: float = 0.4
    """LIST requests of a streaming job: every 5 s one for the trigger and one for urgent pointers."""
    gb_seconds_of_manifest: float = 0.1
    """Used by the functions that divide, plan, settle and announce (docs/performance.md)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated cost in dollars."""

    requests: float
    """Requests to S3, SQS and EventBridge."""
    ledger: float
    functions: float
    storage_per_month: float
    """Price of what was written to lake, quarantine and ledger, for each month that it is kept; not in ``total``."""

    @property
    def total(self) -> float:
        """All cost that is paid only once."""
        return self.requests + self.ledger + self.functions


def expected_share(
    rows: Sequence[ManifestRow], target_file_bytes: int, gzip_ratio: float = INFLATED_RATIO
) -> CostShare:
    """The counts that manifests will have after their conversion; the price of their job runs is 0.

    ``gzip_ratio`` is the number of NDJSON bytes for each byte of a compressed file.
    """
    compressed = sum(row.compressed_bytes for row in rows)
    size = sum(row.bytes for row in rows)
    written = round((size + (gzip_ratio - 1) * compressed) * OUTPUT_RATIO)
    return CostShare(
        "",
        0,
        bytes=size,
        files=sum(row.files for row in rows),
        manifests=len(rows),
        objects=max(len(rows), round(written / target_file_bytes)),
        written_bytes=written,
    )


def estimate(rows: Iterable[CostRow]) -> Estimate:
    """The cost in addition to the job runs ``rows``. Pure."""
    rows = list(rows)
    stream = [row for row in rows if row.lane == Lane.STREAM]
    return estimate_shares(
        [share for row in rows for share in row.shares],
        pointers=sum(share.manifests for row in stream for share in row.shares),
        stream_seconds=sum(row.seconds for row in stream),
    )


def estimate_shares(
    shares: Sequence[CostShare], invocations: int | None = None, pointers: int = 0, stream_seconds: float = 0.0
) -> Estimate:
    """The cost in addition to the job runs for ``shares``, whose files ``invocations`` of ``route`` received. Pure.

    ``pointers`` is the number of manifests in the stream lane; ``stream_seconds`` is the time of its job runs.
    """
    count = Units()
    files, manifests = sum(share.files for share in shares), sum(share.manifests for share in shares)
    objects, read = sum(share.objects for share in shares), sum(share.bytes for share in shares)
    if invocations is None:
        invocations = -(-files // count.files_of_invocation)
    s3_writes = manifests * count.s3_writes_of_manifest + objects * count.s3_writes_of_object
    s3_writes += invocations * count.s3_writes_of_invocation
    lists = files * count.s3_writes_of_file + pointers * count.s3_writes_of_pointer
    lists += stream_seconds * count.s3_writes_of_stream_second
    s3_reads = manifests * count.s3_reads_of_manifest + objects * count.s3_reads_of_object + files + read // READ_BYTES
    s3_reads += invocations * count.s3_reads_of_invocation
    waiting = manifests - pointers
    writes = files * count.writes_of_file + manifests * count.writes_of_manifest
    writes += invocations * count.writes_of_invocation + waiting * count.writes_of_waiting_manifest
    reads = manifests * count.reads_of_manifest + waiting * count.reads_of_waiting_manifest
    reads += invocations * count.reads_of_invocation + files * count.reads_of_file
    gb_seconds = manifests * count.gb_seconds_of_manifest + files * count.gb_seconds_of_file
    gb_seconds += invocations * count.gb_seconds_of_invocation
    return Estimate(
        requests=(s3_writes + lists) * S3_WRITE
        + s3_reads * S3_READ
        + files * count.queue_requests_of_file * QUEUE_REQUEST
        + manifests * EVENT,
        ledger=writes * LEDGER_WRITE + reads * LEDGER_READ,
        functions=gb_seconds * FUNCTION_GB_SECOND,
        storage_per_month=sum(share.written_bytes for share in shares) / GIB * S3_GB_MONTH
        + files * count.ledger_bytes_of_file / GIB * LEDGER_GB_MONTH,
    )
