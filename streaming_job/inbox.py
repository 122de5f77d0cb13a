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
from transform.task_model import ConversionContext

PARALLEL_DELETES = 16


def find_row(context: ConversionContext, manifest: str) -> ManifestRow | None:
    """The row of a manifest; None if it is missing or damaged, which its conversion and the sweep report."""
    try:
        return context.ledger.manifests.get(manifest)
    except TerminalError:
        return None


def log_passing_fault(context: ConversionContext, error: Exception) -> None:
    """Log a fault of load or network, which the next look may not meet. Raises any other error again."""
    fault = fault_of(error)
    if fault is None or not fault.passing:
        raise error
    context.log(f"the next look retries it: {fault.cause}")


def has_open_manifests(context: ConversionContext) -> bool:
    """Whether a pointer in the inbox names an open manifest of the stream lane.

    Pointers alone do not show that: a killed run may have left the pointers of manifests that it converted.
    """
    found = (find_pointers(context, (), (), urgent=urgent, limit=None) for urgent in (True, False))
    rows = (find_row(context, manifest) for pointers in found for manifest in pointers)
    # A forced manifest is open in the batch lane, and its old pointer may still be here.
    return any(row is not None and row.open and row.lane == Lane.STREAM for row in rows)


def find_pointers(
    context: ConversionContext, busy: Collection[str], left: Collection[str], *, urgent: bool, limit: int | None
) -> dict[str, list[str]]:
    """Keys of at most ``limit`` pointers by manifest, oldest manifest first: the urgent pointers, or all others.

    Pointers to ``busy`` manifests, and the keys in ``left``, are excluded.
    """
    pointers: dict[str, list[str]] = {}
    own = inbox(context.ledger.stream.shard)
    # An id begins with the creation time of its manifest, and "urgent" comes after all ids.
    prefix = f"{own}{URGENT}" if urgent else own
    listed = (item["Key"] for item in list_objects(context.s3, context.resources.control_bucket, prefix))
    offered = (key for key in listed if key.startswith(f"{own}{URGENT}") == urgent and key not in left)
    # Busy ones are skipped before the limit: the pointers of a slow file's portion would keep others waiting.
    waiting = ((name, key) for key in offered if (name := manifest_of_pointer(key)) is not None and name not in busy)
    for manifest, key in islice(waiting, limit):
        pointers.setdefault(manifest, []).append(key)
    return pointers


def delete_pointers(context: ConversionContext, keys: Collection[str]) -> list[str]:
    """Delete pointers that were read. Returns those that are left after a fault of the environment, which is logged.

    The next run reads them again. After a fault no further deletion begins. Raises ``BotoCoreError`` or ``ClientError``
    for any error that is not a fault of the environment.
    """
    bucket = context.resources.control_bucket
    faults: list[EnvironmentFault] = []

    def stays(key: str) -> bool:
        try:
            if not faults:
                context.s3.delete_object(Bucket=bucket, Key=key)
        except (BotoCoreError, ClientError) as error:
            if (fault := fault_of(error, f"s3://{bucket}/{key}")) is None:
                raise
            faults.append(fault)
        return bool(faults)

    with ThreadPoolExecutor(PARALLEL_DELETES) as pool:
        left = [key for key, is_left in zip(keys, pool.map(stays, keys), strict=True) if is_left]
    if faults:
        mark = "" if faults[0].passing else f"{ALARM} "
        stay = format_count(len(left), "pointer that was read stays", "pointers that were read stay")
        context.log(f"{mark}{stay} in the inbox: {faults[0]}; the next run reads them again")
    return left
