"""Texts for people: counts, units, dollars, times, commands, and names that may hold anything."""

import re
import shlex
import unicodedata
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TypeVar
from zoneinfo import ZoneInfo

T = TypeVar("T")

INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks that are invisible (Unicode, Default_Ignorable_Code_Point, and the empty Braille pattern)."""
RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
"""Bidirectional classes of characters that a terminal or a mail reorders, with the digits and dots next to them."""


def printable(text: str) -> str:
    r"""The text in one line of visible characters: each other one as its Python escape, such as ``\n`` or ``\u202e``.

    A key may hold any character. A line break could add a line to a log that an alarm's filter reads, and an escape
    sequence could control the terminal. A mark of the writing direction, or a letter that is read from right to left,
    could show another name.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if _is_visible(char) else char.encode("unicode_escape", "surrogatepass").decode() for char in text
    )


def _is_visible(char: str) -> bool:
    return char.isprintable() and not INVISIBLE.match(char) and unicodedata.bidirectional(char) not in RIGHT_TO_LEFT


def format_count(number: float, singular: str, plural: str = "") -> str:
    """``1 file``, ``2,000 files``. ``plural`` follows every number but 1; by default it is ``singular`` with an s."""
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"


MAX_NAMES = 20


def format_names(names: Iterable[str]) -> str:
    first, more = list(islice(it := iter(names), MAX_NAMES)), sum(1 for _ in it)
    return ", ".join(first) + (f" and {more:,} more" if more else "")


SHELL_WORD = r"""(?:[\w@%+=:,./<>-]|'[^']*'|"'"|\$'(?:\\.|[^'\\])*')+"""
COMMAND = re.compile(rf"(')hybrid-router ([a-z-]+)([^']*)'|(?<=run: )()hybrid-router ([a-z-]+)((?: {SHELL_WORD})*)")
"""Matches a command in quotes; or after ``run:``, as it may contain quotes itself."""
WITHOUT_STAGE = frozenset({"calibrate", "convert", "demo", "local", "settings", "try"})
STAGE_OPTIONS = re.compile(r" --stage \S+| --local\b")


def with_options(text: str, options: str) -> str:
    """The text with ``options``, such as `` --stage prod``, added to each ``COMMAND`` that works on a stage."""

    def complete(match: re.Match[str]) -> str:
        quote, command, rest = (group for group in match.groups() if group is not None)
        if command in WITHOUT_STAGE:
            return match[0]
        # Without --canary, `doctor` has no --local.
        place = options.replace(" --local", "") if command == "doctor" else options
        return f"{quote}hybrid-router {command}{STAGE_OPTIONS.sub('', rest)}{place}{quote}"

    return COMMAND.sub(complete, text)


def shell_word(text: str) -> str:
    """The text as one word of bash, ksh or zsh, in visible characters only: it can be printed and pasted."""
    quoted = shlex.quote(text)
    if printable(quoted) == quoted:
        return quoted
    return f"$'{''.join(map(_shell_character, text))}'"


def _shell_character(char: str) -> str:
    if _is_visible(char):
        return f"\\{char}" if char in "\\'" else char
    # As bytes, which a shell writes in every locale; the bytes of a file's name need not be characters.
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))


def advise_reprocess(manifest: str) -> str:
    """What to do with a FAILED manifest; follows a semicolon in a message."""
    return f"when the cause is removed, run 'hybrid-router reprocess --manifest {manifest}'"


def reprocess_file_command(uri: str) -> str:
    return f"hybrid-router reprocess {shell_word(uri)}"


def explain_command(uri: str) -> str:
    return f"hybrid-router explain {shell_word(uri)}"


SIZES = ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
EVENING_HOUR = 17
"""From this hour on, a later time of the same day is called tonight."""


def three_digits(number: float) -> str:
    """A number rounded to three significant digits, without an exponent below a million."""
    return f"{float(f'{number:.3g}'):,g}"


def format_size(size: float) -> str:
    """Bytes in decimal units, with three significant digits."""
    for factor, unit in SIZES:
        if size >= factor:
            return f"{three_digits(size / factor)} {unit}"
    return f"{size:.0f} B"


def format_duration(seconds: float) -> str:
    """A duration in its two largest units: ``4.2 s``, ``2 min 20 s``, ``12 min``, ``3 h 12 min``, ``2 d 5 h``."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 10:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def format_known(form: Callable[[T], str], value: T | None, unknown: str = "") -> str:
    return unknown if value is None else form(value)


MIN_DOLLARS = 0.0001


def format_dollars(dollars: float) -> str:
    """Dollars with two digits after the point; amounts below 1 with four, down to ``< $0.0001``."""
    if 0 < dollars < MIN_DOLLARS:
        return f"< ${MIN_DOLLARS}"
    return f"${dollars:,.2f}" if dollars >= 1 or not dollars else f"${dollars:,.4f}"


def format_instant(instant: str | float) -> str:
    """An instant (ISO 8601, or seconds since the epoch) to the second, UTC; empty for an empty text."""
    if not isinstance(instant, str):
        return f"{datetime.fromtimestamp(instant, UTC):%Y-%m-%d %H:%M:%S}"
    return f"{read_instant(instant).astimezone(UTC):%Y-%m-%d %H:%M:%S}" if instant else ""


def format_clock(text: str, zone: ZoneInfo, now: datetime) -> str:
    """An instant (ISO 8601) on the clock of ``zone``: ``tonight 22:00``, ``tomorrow 06:10``, ``2026-11-20 22:00``.

    A time that the clock shows twice when summer time ends gets its offset: ``today 02:30+0200``.
    """
    instant = read_instant(text)
    local, today = instant.astimezone(zone), now.astimezone(zone).date()
    is_shown_twice = local.replace(fold=1 - local.fold).utcoffset() != local.utcoffset()
    clock = f"{local:%H:%M%z}" if is_shown_twice else f"{local:%H:%M}"
    if local.date() == today:
        return f"{'tonight' if local.hour >= EVENING_HOUR and instant > now else 'today'} {clock}"
    if local.date() == today + timedelta(days=1):
        return f"tomorrow {clock}"
    return f"yesterday {clock}" if local.date() == today - timedelta(days=1) else f"{local:%Y-%m-%d} {clock}"


def read_instant(text: str) -> datetime:
    """An instant as the ledger writes it; UTC if the text has no offset."""
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
