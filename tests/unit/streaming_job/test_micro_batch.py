from __future__ import annotations

from streaming_job.micro_batch import manifest_ids, portions


def test_an_invalid_pointer_is_logged_and_skipped() -> None:
    lines: list[str] = []
    pointers = ['{"manifest":"b"}', '{"manifest":"a"}', '{"manifest":"b"}', "garbage", "[]", '{"manifest":7}', "", "{}"]
    assert manifest_ids(pointers, lines.append) == ["b", "a"]
    assert len(lines) == 5


def test_a_micro_batch_is_divided_into_jobs_by_bytes() -> None:
    # Small manifests share a job, a large one has its own, and the order stays
    assert portions({"a": 1, "b": 1, "c": 1}, 3) == [["a", "b", "c"]]
    assert portions({"a": 2, "b": 2, "c": 9, "d": 1}, 3) == [["a"], ["b"], ["c"], ["d"]]
    assert portions({"a": 0, "b": 3, "c": 0}, 3) == [["a", "b", "c"]]
    assert portions({}, 3) == []
