"""Checks that the written data adds up to what was read. Pure. An attempt that fails the audit is never committed."""

from collections import Counter
from collections.abc import Mapping, Sequence

from lake.commit import SourceCount
from lake.errors import AuditError
from lake.manifest import Manifest, ObjectVersion
from lake.texts import format_count
from transform.quarantine_writer import QuarantinedThing
from transform.task_model import SplitResult, Task, TaskResult


def audit(
    manifest: Manifest,
    tasks: Sequence[Task],
    results: Sequence[TaskResult],
    kept: Mapping[ObjectVersion, SourceCount] | None = None,
) -> tuple[SourceCount, ...]:
    """The counts of each file, in the manifest's order.

    ``kept`` has the counts of files whose rows were published by an earlier generation and are kept. Raises
    ``AuditError`` if a task has no result or two, the splits of a file do not tile it, a line is neither row nor reject
    nor blank, the Parquet footers count other rows than were read, or the quarantine differs from what was rejected.
    """
    _check_results(manifest, tasks, results)
    kept = kept or {}
    excluded = {file: reason for task in tasks for file, reason in task.excluded}
    by_file: dict[ObjectVersion, list[SplitResult]] = {file: [] for file in manifest.files if file not in kept}
    for result in results:
        written, read = sum(item.rows for item in result.objects), sum(split.rows for split in result.splits)
        if written != read:
            problem = f"task {result.number} read {format_count(read, 'row')}, but its files' footers count {written}"
            raise _error(manifest, problem)
        for split in result.splits:
            if split.split.file not in by_file:
                raise _error(manifest, f"{split.split.file.uri} was read, but is not one of its files")
            by_file[split.split.file].append(split)
    sources = []
    for file in manifest.files:
        if file in kept:
            sources.append(kept[file])
        elif file in excluded:
            sources.append(SourceCount(file.uri, file.version, file.size, 0, 0, 0, {}, None, excluded[file]))
        else:
            sources.append(_source_count(manifest, file, by_file[file]))
    _check_quarantine(manifest, excluded, results)
    return tuple(sources)


def _check_results(manifest: Manifest, tasks: Sequence[Task], results: Sequence[TaskResult]) -> None:
    if sorted(task.number for task in tasks) != sorted(result.number for result in results):
        returned = format_count(len(results), "result")
        raise _error(manifest, f"{format_count(len(tasks), 'task')} returned {returned}, or results of other tasks")
    keys = [item.key for result in results for item in result.uploaded]
    if len(set(keys)) != len(keys):
        raise _error(manifest, "two tasks wrote objects of the same name")


def _check_quarantine(manifest: Manifest, excluded: Mapping[ObjectVersion, str], results: Sequence[TaskResult]) -> None:
    expected: Counter[QuarantinedThing] = Counter(
        ("file", file.uri, file.version, reason) for file, reason in excluded.items()
    )
    found: Counter[QuarantinedThing] = Counter()
    for result in results:
        uploaded = [(item.rows, item.size) for item in result.quarantine]
        if uploaded != [(content.records, content.size) for content in result.quarantine_contents]:
            raise _error(manifest, f"the quarantine objects of task {result.number} are not the files that it wrote")
        for content in result.quarantine_contents:
            found.update(content.counts)
        for item in result.splits:
            file = item.split.file
            expected.update({("line", file.uri, file.version, reason): count for reason, count in item.rejects.items()})
    for kind, uri, version, reason in sorted(expected.keys() | found.keys()):
        thing = (kind, uri, version, reason)
        if expected[thing] != found[thing]:
            raise _error(
                manifest,
                f"{expected[thing]} {kind}s of {uri} (version {version}) were rejected because of {reason!r}, and the "
                f"quarantine holds {found[thing]}",
            )


def _source_count(manifest: Manifest, file: ObjectVersion, splits: list[SplitResult]) -> SourceCount:
    ordered = sorted(splits, key=lambda item: (item.split.start, item.split.end))
    starts, ends = [item.split.start for item in ordered], [item.split.end for item in ordered]
    if not splits or [0, *ends] != [*starts, file.size]:
        raise _error(manifest, f"the splits of {file.uri} do not cover it exactly once")
    stored = lines = rows = blank_lines = 0
    compressed, rejects, first_reject = False, Counter[str](), None
    for item in ordered:
        if item.lines != item.rows + item.blank_lines + sum(item.rejects.values()):
            raise _error(manifest, f"a line of {file.uri} is neither row nor reject nor blank")
        compressed, stored = compressed or item.compressed, stored + item.bytes
        lines, rows, blank_lines = lines + item.lines, rows + item.rows, blank_lines + item.blank_lines
        first_reject = first_reject or item.first_reject
        if item.rejects:
            rejects.update(item.rejects)
    if not compressed and stored != file.size:
        raise _error(manifest, f"the lines of {file.uri} do not add up to its {file.size} bytes")
    return SourceCount(file.uri, file.version, file.size, lines, rows, blank_lines, dict(rejects), first_reject, None)


def _error(manifest: Manifest, problem: str) -> AuditError:
    return AuditError(f"manifest {manifest.id}: {problem}; the attempt is discarded, and the manifest is retried")
