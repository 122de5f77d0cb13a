"""The tests of lake and router on DynamoDB Local and MinIO, and their requests in the models of older SDKs."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from tests.conformance.tools import REPOSITORY, Opinion, ToolError, dynamodb, minio, older_python

PLUGIN = ("-p", "tests.conformance.plugin")
LEDGER = ("tests/unit/lake", "tests/unit/router")
OBJECTS = (
    "tests/unit/lake/test_documents.py",
    "tests/unit/lake/test_publish.py",
    "tests/unit/lake/test_transitions.py",
    "tests/unit/router/test_reprocess.py",
    "tests/unit/router/sweep",
    "tests/unit/router/test_backfill.py",
    "tests/unit/router/test_ownership.py",
    "tests/unit/router/test_resubmit.py",
    "tests/unit/router/test_route_handler.py",
    "tests/unit/router/test_settle.py",
)
"""The tests that write documents and objects, complete uploads or list a bucket."""
LISTED_BY_KEY = "MinIO lists unfinished uploads of a whole key, not of a prefix (its documentation)"
KEY_MARKERS = "MinIO appends text of its own to the key marker of a page, which S3 never parses"
BY_PREFIX = "test_publish::test_what_a_document_that_was_lost_has_named_is_found_by_its_prefix"
UNABORTED = "test_publish::test_nothing_fails_and_nothing_is_deleted_while_an_upload_cannot_be_aborted"
BY_PAGE = "test_sweep::test_a_listing_of_the_input_continues_after_the_last_page_of_a_killed_sweep"
PASSED_OVER = "moto passes over the first key after a marker that names no version, and MinIO lists it, as S3 does"
OWN_CLOCK = "MinIO's objects have the time of its own clock, and this is about their age"
KNOWN_OF_MINIO = {
    "test_backfill::test_a_dry_run_counts_the_archived_objects_without_an_owner": "MinIO has no archives",
    "test_sweep::test_a_dry_run_reports_what_the_next_sweep_does": OWN_CLOCK,
    "test_sweep_missed::test_old_days_do_not_lengthen_the_listing_of_recent_ones": PASSED_OVER,
    f"{BY_PREFIX}[change_document-was changed after]": LISTED_BY_KEY,
    f"{BY_PREFIX}[remove_document-is gone]": LISTED_BY_KEY,
    **{f"{UNABORTED}[{answer}]": LISTED_BY_KEY for answer in ("SlowDown", "AccessDenied", "404")},
    **{f"{BY_PAGE}[{page}]": KEY_MARKERS for page in range(1, 5)},
}
COMPACTION = "The strategy of a compaction is not in 1.38, and is in 1.40: `tables` needs it with `tables.compaction`"
KNOWN_OF_OLD_MODELS = {
    "s3 PutObject": "Conditional writes came in August 2024: `plan` needs them, and the sweep a newer botocore",
    "s3 CreateMultipartUpload": (
        "Checksums of whole objects came with botocore 1.36; only jobs begin uploads, and Glue has 1.42"
    ),
    "s3 CompleteMultipartUpload": (
        "The sweep's function finishes publishes, with checksums of whole objects: it needs botocore 1.36 (January "
        "2025) or newer; Lambda updates its runtimes unless a function is held back"
    ),
    "emr-serverless CancelJobRun": (
        "The time that a cancelled run has is not in 1.38, and is in 1.40: `stream_control` needs it for a stream on "
        "EMR Serverless"
    ),
    "glue CreateTableOptimizer": COMPACTION,
    "glue UpdateTableOptimizer": COMPACTION,
}


def dynamodb_local(folder: Path) -> Opinion:
    """``folder`` gets requests.json, which ``old_models`` reads."""
    with dynamodb(folder) as endpoint:
        results = _run_tests(folder, [*LEDGER, "--dynamodb", endpoint, "--requests", str(folder / "requests.json")])
    topic = "The tests of lake and router that have a ledger: transactions, conditions, the index, pages, limits"
    return Opinion("DynamoDB Local 2.6.1, Amazon's own", topic, len(results), {}, _failed(results))


def minio_server(folder: Path) -> Opinion:
    with minio(folder) as endpoint:
        results = _run_tests(folder, [*OBJECTS, "--s3", endpoint])
    topic = "The tests of documents, uploads, publishing, sweep and backfill: checksums, conditions, listings"
    return Opinion("MinIO", topic, len(results), KNOWN_OF_MINIO, _failed(results))


def old_models(folder: Path) -> Opinion:
    """The requests of the tests on DynamoDB Local, which must run first, are valid in an old botocore's models."""
    requests = json.loads((folder / "requests.json").read_text(encoding="utf-8"))
    loader = Loader(extra_search_paths=[str(older_python() / "botocore" / "data")], include_default_search_paths=False)
    different = {}
    for service, operation, parameters in requests:
        problem = _problem(ServiceModel(loader.load_service_model(service, "service-2")), operation, parameters)
        if problem:
            different[f"{service} {operation}"] = problem
    topic = (
        "Each operation and set of parameters of lake and router, in a model older than any of Lambda's for Python 3.13"
    )
    return Opinion("botocore 1.34.145", topic, len(requests), KNOWN_OF_OLD_MODELS, different)


def _problem(model: ServiceModel, operation: str, parameters: dict[str, object]) -> str:
    if operation not in model.operation_names:
        return "the model has no such operation"
    shape = model.operation_model(operation).input_shape
    assert shape is not None
    errors = ParamValidator().validate(parameters, shape).generate_report().splitlines()
    # Types are not compared: times are texts in requests.json, and boto3 makes DynamoDB's of Python's later.
    unknown = [error for error in errors if error.startswith("Unknown parameter") and ": S, N, B, " not in error]
    return "; ".join(error.partition(", must be one of")[0] for error in unknown)


def _run_tests(folder: Path, arguments: Sequence[str]) -> dict[str, str]:
    """Test -> "" or its failure."""
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", *PLUGIN, "-q", f"--junit-xml={report}", *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise ToolError(f"pytest exited with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    results = {}
    for case in ET.parse(report).iter("testcase"):
        problems = [item.get("message", "") for item in case if item.tag in ("failure", "error")]
        results[f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"] = "; ".join(problems)
    return results


def _failed(results: dict[str, str]) -> dict[str, str]:
    return {name: problem.splitlines()[0][:200] for name, problem in results.items() if problem}
