"""The inbox of a job: finds pointers to open manifests, and deletes pointers."""

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import TerminalError
from lake.layout import URGENT, inbox, list_objects, manifest_of_pointer
from lake.ledger import ManifestRow
from lake.manifest import Lane
from lake.texts import format_count
from transform.give_up import EnvironmentFault, fault_of
from transform.outcome import ALARM
from transform.task_model import ConversionContext, JobServices

PARALLEL_DELETES = 16
MAX_POINTERS = 1000
"""Maximum number of urgent pointers that one look returns, oldest first."""


def find_row(services: JobServices, manifest: str) -> ManifestRow | None:
    """The row of a manifest; None if it is missing or damaged, which its conversion and the sweep report."""
    try:
        return services.ledger.manifests.get(manifest)
    except TerminalError:
        return None


def log_passing_fault(context: ConversionContext, error: Exception) -> None:
    """Log a fault of load or network, which the next look may not meet. Raises any other error again."""
    fault = fault_of(error)
    if fault is None or not fault.passing:
        raise error
    context.log(f"the next look retries it: {fault.cause}")


def has_open_manifests(services: JobServices) -> bool:
    """Whether a pointer in the inbox names an open manifest of the stream lane.

    Pointers alone do not show that: a killed run may have left the pointers of manifests that it converted.
    """
    seen = set()
    own = inbox(services.ledger.stream.shard)
    for item in list_objects(services.s3, services.resources.control_bucket, own):
        manifest = manifest_of_pointer(item["Key"])
        if manifest and manifest not in seen:
            seen.add(manifest)
            row = find_row(services, manifest)
            # A forced manifest is open in the batch lane, and its old pointer may still be here.
            if row is not None and row.open and row.lane == Lane.STREAM:
                return True
    return False


def urgent_pointers(services: JobServices, busy: Collection[str]) -> dict[str, list[str]]:
    """Keys of urgent pointers by manifest, oldest manifest first, without pointers to ``busy`` manifests."""
    pointers: dict[str, list[str]] = {}
    prefix = f"{inbox(services.ledger.stream.shard)}{URGENT}"
    listed = (item["Key"] for item in list_objects(services.s3, services.resources.control_bucket, prefix))
    # Busy ones are skipped before the limit: the pointers of a slow file's portion would keep others waiting.
    waiting = ((name, key) for key in listed if (name := manifest_of_pointer(key)) is not None and name not in busy)
    for manifest, key in islice(waiting, MAX_POINTERS):
        pointers.setdefault(manifest, []).append(key)
    # An id begins with the creation time of its manifest.
    return dict(sorted(pointers.items()))


def delete_pointers(context: ConversionContext, keys: Collection[str]) -> bool:
    """Delete pointers that were read. False: some are left after a fault of the environment, which is logged.

    The next look, query or run reads the rest again. After a fault no further deletion begins. Raises ``BotoCoreError``
    or ``ClientError`` for any error that is not a fault of the environment.
    """
    services, bucket = context.services, context.services.resources.control_bucket
    faults: list[EnvironmentFault] = []

    def delete(key: str) -> bool:
        if faults:
            return False
        try:
            services.s3.delete_object(Bucket=bucket, Key=key)
        except (BotoCoreError, ClientError) as error:
            if (fault := fault_of(error, f"s3://{bucket}/{key}")) is None:
                raise
            faults.append(fault)
            return False
        return True

    with ThreadPoolExecutor(PARALLEL_DELETES) as pool:
        left = len(keys) - sum(pool.map(delete, keys))
    if faults:
        mark = "" if faults[0].passing else f"{ALARM} "
        stay = format_count(left, "pointer that was read stays", "pointers that were read stay")
        context.log(f"{mark}{stay} in the inbox: {faults[0]}; they are read again")
    return not left
