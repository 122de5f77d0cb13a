"""A stub of the batch lane's job, without Spark, for measurements of the control plane.

The product's own functions claim every manifest of the run, commit it without any output file, and publish it.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from lake.commit import CommitDocument, write_commit
from lake.documents import read_uri
from lake.layout import commit_key
from lake.ledger import State
from lake.publish import roll_forward
from transform.job_main import open_services, parse_arguments
from transform.task_model import JobServices

WRITE_THREADS = 16


def end(services: JobServices, run: str, name: str) -> None:
    """Take one manifest from QUEUED to DONE."""
    ledger, control = services.ledger, services.resources.control_bucket
    row = ledger.manifests.get(name)
    assert row is not None
    claim = ledger.manifests.claim(row, run, datetime.now(UTC), timedelta(minutes=10))
    assert claim is not None
    document = CommitDocument(name, 1, 1, row.partition, run, datetime.now(UTC).isoformat(), (), (), (), (), 0)
    named = write_commit(services.s3, control, commit_key(name, 1, 1, run), document)
    ledger.manifests.commit(claim, named, datetime.now(UTC))
    publishing = replace(claim.row, state=State.PUBLISHING, document=named)
    roll_forward(services.s3, ledger, control, publishing, lambda: datetime.now(UTC))


def main(argv: list[str]) -> None:
    """Take all manifests of the run document to DONE."""
    arguments = parse_arguments(argv)
    services = open_services(arguments)
    document = json.loads(read_uri(services.s3, arguments["run"]))
    with ThreadPoolExecutor(WRITE_THREADS) as pool:
        list(pool.map(partial(end, services, arguments["JOB_RUN_ID"]), document["manifests"]))


if __name__ == "__main__":
    main(sys.argv[1:])
