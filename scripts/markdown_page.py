"""Markdown pages with a part that a program writes: tables, and the text between two markers."""

from collections.abc import Iterable, Sequence


def markdown_table(names: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table: columns of text, then the columns of ``numbers``, which are aligned right."""
    rule = f"|{'---|' * len(names)}{'---:|' * len(numbers)}"
    return [_row((*names, *numbers)), rule, *map(_row, rows)]


def replace_between(document: str, text: str, begin_marker: str, end_marker: str) -> str:
    """Return the document with its text between two markers replaced by ``text``.

    Raises ``ValueError`` if a marker is missing.
    """
    head, begin, rest = document.partition(begin_marker)
    _, end, tail = rest.partition(end_marker)
    if not begin or not end:
        raise ValueError(
            f"the document lacks the lines {begin_marker} and {end_marker}: add them where the figures belong"
        )
    return f"{head}{begin_marker}\n\n{text}\n\n{end_marker}{tail}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
