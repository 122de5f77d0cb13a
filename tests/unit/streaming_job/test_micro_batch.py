from __future__ import annotations

from streaming_job.micro_batch import InputSize, manifest_ids, portions


def test_an_invalid_pointer_is_logged_and_skipped() -> None:
    lines: list[str] = []
    pointers = ['{"manifest":"b"}', '{"manifest":"a"}', '{"manifest":"b"}', "garbage", "[]", '{"manifest":7}', "", "{}"]
    assert manifest_ids(pointers, lines.append) == ["b", "a"]
    assert len(lines) == 5


def test_a_micro_batch_is_divided_into_jobs_by_bytes() -> None:
    # Small manifests share a job, a large one has its own, and the order stays
    assert by_bytes(a=1, b=1, c=1) == [["a", "b", "c"]]
    assert by_bytes(a=2, b=2, c=9, d=1) == [["a"], ["b"], ["c"], ["d"]]
    assert by_bytes(a=0, b=3, c=0) == [["a", "b", "c"]]
    assert by_bytes() == []


def by_bytes(**sizes: int) -> list[list[str]]:
    return portions({name: InputSize(size, 0) for name, size in sizes.items()}, InputSize(3, 100))


def test_a_micro_batch_is_divided_into_jobs_by_files() -> None:
    # Given manifests of many small files, one of which has more than a job may have
    sizes = {name: InputSize(1, files) for name, files in {"a": 40, "b": 60, "c": 1, "d": 120, "e": 1}.items()}
    # When, Then
    assert portions(sizes, InputSize(1000, 100)) == [["a", "b"], ["c"], ["d"], ["e"]]
