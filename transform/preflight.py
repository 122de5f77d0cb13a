"""Checks whether a run may read the input and write the output, before it claims anything."""

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import HybridRouterError, TransientError
from lake.layout import preflight_key
from lake.manifest_documents import format_blocked_run, read_manifest
from lake.publish import abort_upload
from transform.give_up import EnvironmentFault, fault_of, record_fault
from transform.source import DeniedFileError, Source, UnreadableFileError
from transform.task_model import ConversionContext

MAX_SAMPLED = 16
"""Number of manifests of which more than one file is tried: denied objects must not stop all others."""
MAX_FILES = 8
"""Files of a manifest that are tried; drawn at random, because an uploader can give its objects the first keys."""
MAX_OTHERS = 1000
"""Number of manifests from ``others``, after the first ones, from which a sample is drawn."""


class BlockedRunError(TransientError):
    """The environment prevents the run from working; it has claimed nothing.

    ``denied`` has the manifests that no run can convert until a person acts. The others were not tried, or may be
    converted later.
    """

    def __init__(self, run: str, fault: EnvironmentFault, denied: Sequence[str]) -> None:
        super().__init__(format_blocked_run(run, str(fault)))
        self.denied = denied


def check_environment(context: ConversionContext, manifests: Sequence[str], others: Iterable[str] = ()) -> None:
    """Try what every conversion needs: 7 requests if all is well. A missing object is not a denial.

    The run is about to claim ``manifests``. ``others`` are more manifests of the lane, the likeliest to be readable
    first. They are used only if no file of ``manifests`` can be read: they show whether the whole input is denied,
    or only single objects. Raises ``BlockedRunError`` with one sentence: what is refused, and what to do. The fault is
    also recorded as the reason of a waiting manifest, so that the verdict of the execution names it.
    """
    fault = _output_fault(context)
    denied = manifests if fault is not None and fault.denied else ()
    if fault is None:
        fault, denied = _input_fault(context, manifests, others)
    if fault is None:
        return
    record_fault(context, manifests[:MAX_SAMPLED], fault)
    raise BlockedRunError(context.run, fault, denied)


def _output_fault(context: ConversionContext) -> EnvironmentFault | None:
    s3, key = context.s3, preflight_key(context.run)
    for bucket in context.resources.output_buckets:
        try:
            upload = s3.create_multipart_upload(Bucket=bucket, Key=key)
            abort_upload(s3, bucket, key, upload["UploadId"])
        except (BotoCoreError, ClientError) as error:
            if (fault := fault_of(error, f"s3://{bucket}")) is None:
                raise
            return fault
    return None


def _input_fault(
    context: ConversionContext, manifests: Sequence[str], others: Iterable[str]
) -> tuple[EnvironmentFault | None, Sequence[str]]:
    """The first fault, if no tried file could be read, and the manifests whose files are denied.

    The fault is None if a file could be read, or if there was none to try.
    """
    source = Source(context.region, context.settings.input_kms_keys)
    first: EnvironmentFault | None = None
    denied = []
    for position, manifest in enumerate(_candidates(manifests, others)):
        readable, fault = _try_files(context, source, manifest, MAX_FILES if position <= MAX_SAMPLED else 1)
        # Load and network faults concern every file.
        if readable or (fault is not None and fault.passing):
            return fault, ()
        first = first or fault
        if fault is not None and fault.denied:
            denied.append(manifest)
    return first, denied


def _try_files(
    context: ConversionContext, source: Source, manifest: str, number: int
) -> tuple[bool, EnvironmentFault | None]:
    fault: EnvironmentFault | None = None
    try:
        row, resources = context.ledger.manifests.get(manifest), context.resources
        if row is None:
            return False, None
        document = read_manifest(context.s3, resources.control_bucket, row, resources.file_buckets)
        files = [file for file in document.files if file.size]
        for file in random.sample(files, min(len(files), number)):
            try:
                source.fetch(file, 0, 1)
            except DeniedFileError as error:
                fault = fault_of(error, f"manifest {manifest}")
            except UnreadableFileError:
                # Not a fault of the environment: the attempt reports it.
                continue
            else:
                return True, None
    except (HybridRouterError, BotoCoreError, ClientError) as error:
        # An error that belongs to the manifest gives no fault.
        fault = fault_of(error, f"manifest {manifest}") or fault
    return False, fault


def _candidates(manifests: Sequence[str], others: Iterable[str]) -> Iterator[str]:
    """The manifests in a random order, because those of a denied dataset follow each other; then others."""
    yield from random.sample(manifests, len(manifests))
    known = set(manifests)
    rest = (manifest for manifest in others if manifest not in known)
    yield from islice(rest, MAX_SAMPLED)
    drawn = list(islice(rest, MAX_OTHERS))
    yield from random.sample(drawn, min(len(drawn), MAX_SAMPLED))
