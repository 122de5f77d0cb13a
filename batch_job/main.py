"""The batch lane's Glue job: converts the manifests of a run document and reports, or verifies published data."""

import json
import sys
import time
from collections.abc import Collection, Mapping

from botocore.exceptions import BotoCoreError, ClientError

from batch_job.verify_dates import verify_dates
from lake.documents import read_uri
from lake.errors import InvalidInputError
from lake.manifest_documents import read_denied, write_denied
from lake.texts import format_count
from transform.convert import convert
from transform.job_main import run_job
from transform.outcome import ALARM, HELD, format_end, format_faults, format_with_alarm
from transform.preflight import BlockedRunError, check_environment
from transform.task_model import ConversionContext


def run(context: ConversionContext, arguments: Mapping[str, str]) -> int:
    """Convert the manifests of the run document that ``--run`` names; with ``--verify``, compare past dates instead.

    Returns the exit code: 0 if every manifest is terminal or HELD by another run (the state machine retries it),
    else 1. It is also 1 if the environment prevents the run from working; the run has then claimed nothing. Manifests
    that an earlier job run of the run document was denied are skipped, unless no others are left, as when a person
    starts this run. With ``--verify`` it is the exit code of ``verify_dates``. Raises ``InvalidInputError`` if
    ``--run`` is missing or not an S3 URI, or ``--verify`` is not valid.
    """
    if "verify" in arguments:
        return verify_dates(context, arguments["verify"])
    uri = arguments.get("run")
    if not uri:
        raise InvalidInputError("the job argument --run is missing: set it to the S3 URI of a run document")
    document = json.loads(read_uri(context.s3, uri))
    manifests = [str(manifest) for manifest in document["manifests"]]
    files, size = document.get("files", "?"), document.get("bytes", "?")
    context.log(f"run {uri}: {format_count(len(manifests), 'manifest')}, files: {files}, bytes: {size}")
    denied = read_denied(context.s3, context.resources.control_bucket, uri)
    others = [manifest for manifest in manifests if manifest not in denied]
    if others and len(others) < len(manifests):
        number = format_count(len(manifests) - len(others), "manifest is", "manifests are")
        context.log(f"{number} left out, because an earlier job run of this execution was denied access")
        manifests = others
    started = time.monotonic()
    try:
        check_environment(context, manifests)
    except BlockedRunError as error:
        context.log(f"{ALARM} {error}")
        _record_denied(context, uri, denied, error.denied)
        return 1
    outcomes = convert(manifests, context)
    refused = [outcome.manifest for outcome in outcomes if outcome.fault is not None and outcome.fault.denied]
    _record_denied(context, uri, denied, refused)
    for outcome in outcomes:
        context.log(format_with_alarm(outcome))
    if (alarm := format_faults(outcomes)) is not None:
        context.log(alarm)
    unfinished = [outcome for outcome in outcomes if not outcome.terminal and outcome.state != HELD]
    rows = sum(outcome.rows for outcome in outcomes)
    rejects = sum(outcome.rejects for outcome in outcomes)
    seconds = time.monotonic() - started
    context.log(f"{format_count(rows, 'row')}, {format_count(rejects, 'rejected line')} in {seconds:.1f} s")
    context.log(format_end(outcomes, unfinished))
    return 1 if unfinished else 0


def _record_denied(context: ConversionContext, run: str, before: Collection[str], manifests: Collection[str]) -> None:
    """Add to the run document's list of denied manifests. An error is only logged: the next run retries them."""
    if not manifests:
        return
    try:
        write_denied(context.s3, context.resources.control_bucket, run, {*before, *manifests})
    except (BotoCoreError, ClientError) as error:
        context.log(f"the denied manifests could not be recorded, the next run retries them: {error}")


def main(argv: list[str]) -> str | None:
    """Run the job with these command-line arguments; returns the message of its failure, or None."""
    return run_job(argv, "hybrid-router-batch", run)


if __name__ == "__main__":
    # Glue treats any SystemExit as a failure, even one with code 0.
    if (failure := main(sys.argv[1:])) is not None:
        sys.exit(failure)
