"""Text of others in logs, terminals and mails: S3 keys, and reasons and errors that name one."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""The text in one line of visible characters: every other one as its Python escape, such as ``\n`` or ``\u202e``.

    A key may hold any character. A line break would begin a line of the log that the filter of an alarm reads, an
    escape sequence would command the terminal, a mark of the writing direction would show another name.
    """
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text
    )
