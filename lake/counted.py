"""Numbers with their nouns, as people read them: for messages, reasons, errors and pages."""

from __future__ import annotations


def format_count(number: float, singular: str, plural: str = "") -> str:
    """A number with what is counted: ``1 file``, ``2,000 files``. Pure.

    Parameters
    ----------
    singular
        Follows the number 1; the verb can be part of it: ``file is``.
    plural
        Follows every other number; without it, ``singular`` with an s at its end.
    """
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"
