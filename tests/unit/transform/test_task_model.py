"""The results of a Spark job fit the driver."""

import pickle
from pathlib import Path

from ndjson_arrow import REASONS

from lake.documents import encode_document
from lake.manifest import ObjectVersion
from lake.settings.lanes import RUN_FILES
from transform.quarantine_writer import read_back
from transform.task_model import Split, SplitResult

MAX_RESULT_BYTES = 1 << 30
"""Default of ``spark.driver.maxResultSize`` (Spark's "Configuration")."""
FILES = 500
MANY = 1 << 40


def file_of(number: int) -> ObjectVersion:
    """A file with the longest key."""
    key = f"{number:05d}".ljust(1024, "x")
    return ObjectVersion("b" * 63, key, f"{number:032d}", MANY, "2026-11-20T09:30:00+00:00", f"{number:032d}")


def result_of(file: ObjectVersion) -> SplitResult:
    rejects = dict.fromkeys(REASONS, MANY)
    return SplitResult(Split(file, 0, MANY), MANY, 1, 1, rejects, MANY, False, f"{REASONS[0]} at byte {MANY}")


def test_the_results_of_as_many_files_as_a_job_may_have_fit_the_driver(tmp_path: Path) -> None:
    # Given files with the longest keys and lines that are rejected for every reason, and their quarantine
    files = [file_of(number) for number in range(FILES)]
    quarantine = tmp_path / "quarantine.jsonl"
    lines = (
        encode_document({"kind": "lines", "source": file.uri, "version": file.version, "reason": reason, "count": MANY})
        for file in files
        for reason in REASONS
    )
    quarantine.write_bytes(b"\n".join(lines))
    # When their results are sent to the driver
    results = ([result_of(file) for file in files], read_back(quarantine))
    size = len(pickle.dumps(results)) / FILES
    # Then a job with the most files that the settings allow stays below Spark's limit
    assert size * RUN_FILES < MAX_RESULT_BYTES
