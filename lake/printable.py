"""Text of others in logs, terminals and mails: S3 keys, and reasons and errors that name one."""

from __future__ import annotations

import re
import unicodedata

INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks that show nothing (Unicode, Default_Ignorable_Code_Point, and the empty Braille pattern)."""
RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
"""Classes of characters that a terminal or a mail shows in another order, digits and dots next to them included."""


def printable(text: str) -> str:
    r"""The text in one line of visible characters: every other one as its Python escape, such as ``\n`` or ``\u202e``.

    A key may hold any character. A line break would begin a line of the log that the filter of an alarm reads, an
    escape sequence would command the terminal, a mark of the writing direction or a letter that is read from right to
    left would show another name.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if _is_visible(char) else char.encode("unicode_escape", "surrogatepass").decode() for char in text
    )


def _is_visible(char: str) -> bool:
    return char.isprintable() and not INVISIBLE.match(char) and unicodedata.bidirectional(char) not in RIGHT_TO_LEFT
