"""Manifests are merged once they are many, and what one commit reads and writes again is bounded."""

import random

import pytest

from router.iceberg import commit
from router.iceberg.commit import Batch, commit_batch, live_entries, live_files, manifests_of
from router.iceberg.metadata import DataFile, new_metadata

MERGE_AT, MAX_FILES = 5, 20


class Files:
    """Metadata in memory, and the number of entries that were written."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def read(self, path: str) -> bytes:
        return self.files[path]

    def write(self, path: str, body: bytes) -> None:
        assert path not in self.files
        self.files[path] = body


@pytest.mark.parametrize("seed", range(3))
def test_merged_manifests_are_few_and_bounded(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(commit, "MERGE_AT", MERGE_AT)
    monkeypatch.setattr(commit, "MAX_MERGED_FILES", MAX_FILES)
    rng, metadata, files = random.Random(seed), new_metadata("s3://lake/_tables/orders", "u", 0, 0), Files()
    shown: dict[str, DataFile] = {}
    for number in range(1, 60):
        added = [
            DataFile(f"s3://lake/{number}-{item}", 1, 1, (20777, number % 24))
            for item in range(rng.choice((0, 1, 3, MAX_FILES + 10)))
        ]
        removed = rng.sample(sorted(shown), min(len(shown), rng.choice((0, 0, 0, 2))))
        before = set(files.files)
        batch = Batch(number, added, [shown.pop(path) for path in removed])
        metadata = commit_batch(metadata, files, batch, number, 0)
        shown |= {file.path: file for file in added}
        manifests = manifests_of(metadata, files)
        # Each file is there once.
        entries = [entry["data_file"]["file_path"] for item in manifests for entry in live_entries(item, files)]
        assert sorted(entries) == sorted(shown)
        # Nothing that is half full is small: their number follows the files, and that of small ones has a limit.
        small = [item for item in manifests if live_files(item) < MAX_FILES // 2]
        assert len(small) <= MERGE_AT + 1 + len(removed)
        # What was merged in this commit is not larger than a merged manifest.
        new = [item for item in manifests if item["manifest_path"] not in before]
        merged = [item for item in new if not item["deleted_files_count"] and live_files(item) != len(added)]
        assert all(live_files(item) <= MAX_FILES for item in merged)
