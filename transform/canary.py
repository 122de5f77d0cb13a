"""The canary: a run of a deployed job that tries once what a conversion needs, and converts nothing.

``doctor --canary`` starts it in an account before the first data. It writes under keys that the job's role may write,
into the stack's buckets and table, and the command removes the rest.
"""

import os
import pkgutil
import platform
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import boto3
import obstore
import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from lake.canary import BODY, CANARY_ARGUMENT, CanaryRequest, CheckResult
from lake.commit import PendingObject
from lake.documents import encode_document, put_document
from lake.errors import HybridRouterError, TransientError
from lake.layout import canary_key, canary_report_key
from lake.publish import complete_all
from transform.clients import object_store, s3_client
from transform.give_up import fault_of
from transform.outcome import ALARM
from transform.source import Source, UnreadableFileError
from transform.spark_job import failure_reason
from transform.task_model import ConversionContext
from transform.upload import uploading

PACKAGES = ("batch_job", "lake", "streaming_job", "transform", "verify")
"""Packages in the jobs' zip; their modules import every library."""
ENVIRONMENT = ("AWS_", "EMR", "GLUE", "HADOOP", "JAVA", "PYSPARK", "PYTHON", "SERVERLESS_", "SPARK")
"""Prefixes of the environment variables whose names, but not values, are reported."""
ROW_KEPT = timedelta(days=1)
MAX_PROBLEM_CHARACTERS = 700
WorkerReport = tuple[list[CheckResult], dict[str, Any], list["PendingObject"]]
"""The checks of a Python worker, facts about it, and the uploads that the driver completes."""


def run_canary(context: ConversionContext, arguments: Mapping[str, str]) -> int:
    """Make every check, and store the results in the control bucket.

    Returns the exit code, which is 0 even if checks failed, because the report has their outcomes.
    """
    request = CanaryRequest.from_text(arguments[CANARY_ARGUMENT])
    # First, so that the line is in the log when the run has ended.
    context.log(f"{ALARM} canary {request.run}: this line tests the filter of the log, there is nothing to do")
    checks = [_attempt("imports", import_everything), _attempt("region", partial(_check_region, context))]
    of_worker, seen_by_worker, uploads = _run_worker(context, request)
    checks += of_worker
    if request.etag:
        checks.append(_attempt("deleted version", partial(_read_deleted, context, request)))
    checks.append(_attempt("complete twice", partial(_complete_twice, context, uploads)))
    checks.append(_attempt("ledger", partial(_claim_row, context, request)))
    checks.append(_attempt("job runs", partial(context.run_is_terminal, context.run)))
    for result in checks:
        context.log(f"canary {request.run}: {result.check}: {result.problem or 'ok'}")
    jvm: Any = context.spark.sparkContext._jvm
    spark = {"spark": context.spark.version, "java": str(jvm.java.lang.System.getProperty("java.version"))}
    seen = {**spark, "region": context.region, "driver": _describe_process(), "worker": seen_by_worker}
    report = {"checks": [asdict(result) for result in checks], "seen": seen}
    key = canary_report_key(request.run)
    put_document(context.s3, context.resources.control_bucket, key, encode_document(report))
    return 0


def import_everything() -> None:
    for name in PACKAGES:
        for found in pkgutil.walk_packages(import_module(name).__path__, f"{name}."):
            import_module(found.name)


def probe_worker(
    request: CanaryRequest, region: str, input_bucket: str, output_buckets: Iterable[str], _numbers: Iterable[int]
) -> Iterator[WorkerReport]:
    """The checks of one task, run like ``run_partition``: imports, a read by obstore, uploads left incomplete."""
    checks = [_attempt("imports (worker)", import_everything)]
    if request.etag:
        checks.append(_attempt("read by obstore", partial(_read_by_obstore, region, request, input_bucket)))
    uploads: list[PendingObject] = []
    checks += [
        _attempt(f"upload to {bucket}", partial(_upload, region, request, bucket, uploads)) for bucket in output_buckets
    ]
    yield checks, _describe_process(), uploads


def _attempt(check: str, act: Callable[[], object]) -> CheckResult:
    try:
        act()
    except Exception as error:
        return CheckResult(check, _problem_of(error)[:MAX_PROBLEM_CHARACTERS])
    return CheckResult(check)


def _problem_of(error: Exception) -> str:
    if (fault := fault_of(error)) is not None:
        return str(fault)
    if isinstance(error, (Py4JError, PySparkException)):
        return failure_reason(str(error))
    name = "" if isinstance(error, HybridRouterError) else f"{type(error).__name__}: "
    return f"{name}{' '.join(str(error).split())}"


def _run_worker(context: ConversionContext, request: CanaryRequest) -> WorkerReport:
    resources = context.resources
    probe = partial(probe_worker, request, context.region, resources.input_bucket, resources.output_buckets)

    reports: list[WorkerReport] = []
    spark = context.spark.sparkContext
    result = _attempt("worker", lambda: reports.extend(spark.parallelize([0], 1).mapPartitions(probe).collect()))
    return reports[0] if reports else ([result], {}, [])


def _check_region(context: ConversionContext) -> None:
    bucket = context.resources.input_bucket
    found = context.s3.head_bucket(Bucket=bucket).get("BucketRegion", context.region)
    if found != context.region:
        raise TransientError(
            f"the job runs for the region {context.region}, the bucket {bucket} is in {found}: deploy the stack in "
            "the region of the bucket"
        )


def _read_by_obstore(region: str, request: CanaryRequest, bucket: str) -> None:
    """Read with obstore alone, without the other client, which ``Source`` uses if obstore's request is refused."""
    file = request.file(bucket)
    options: Any = {"version": file.version_id} if file.version_id else {"if_match": f'"{file.etag}"'}
    try:
        found = bytes(obstore.get(object_store(region, bucket), file.key, options=options).bytes())
    except Exception:
        # obstore's error is long and has no code. This request raises an error that names the missing permission.
        Source(region, None).fetch(file, 0, file.size)
        raise
    if found != BODY:
        raise TransientError(f"obstore has read {found[:50]!r} instead of {BODY!r}: run the canary again")


def _read_deleted(context: ConversionContext, request: CanaryRequest) -> None:
    file = request.file(context.resources.input_bucket, deleted=True)
    try:
        Source(context.region, context.settings.input_kms_keys).fetch(file, 0, file.size)
    except UnreadableFileError:
        return
    raise TransientError(f"{file.uri} was deleted but can still be read: run the canary again")


def _upload(region: str, request: CanaryRequest, bucket: str, uploaded: list[PendingObject]) -> None:
    with tempfile.TemporaryDirectory() as folder, uploading(s3_client(region)) as add_file:
        path = Path(folder) / "object"
        path.write_bytes(BODY)
        uploaded.append(add_file(path, bucket, canary_key(request.run), 0).result())


def _complete_twice(context: ConversionContext, uploads: list[PendingObject]) -> None:
    first, second = (complete_all(context.s3, uploads) for _ in range(2))
    if first != second:
        raise TransientError(f"the second completion has changed the object: {first} became {second}; report it")
    for item in uploads:
        context.s3.delete_object(Bucket=item.bucket, Key=item.key)


def _claim_row(context: ConversionContext, request: CanaryRequest) -> None:
    rows = context.ledger.canaries
    rows.create(request.run, context.clock(), ROW_KEPT)
    claims = [rows.claim(request.run, owner) for owner in (context.run, "another-run")]
    if claims != [True, False] or rows.owner(request.run) != context.run:
        raise TransientError(f"two claims of one row were answered with {claims}: the ledger does not keep zombies out")


def _describe_process() -> dict[str, Any]:
    """Versions, memory of the machine in MiB, the environment's region, and names of environment variables."""
    return {
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
        "boto3": boto3.__version__,
        "obstore": obstore.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        "region_of_environment": boto3.Session().region_name,
        "environment": sorted(name for name in os.environ if name.startswith(ENVIRONMENT)),
    }
