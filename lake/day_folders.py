"""Folders of days in the input bucket: a listing for recent hours passes over those of old days."""

import re
from datetime import UTC, datetime, timedelta

from lake.settings.operation import LISTING_DAYS

DAY = re.compile(
    r"(.*?(?<!\d))(20\d\d)(\D{0,8})(0[1-9]|1[0-2])(\D{0,8})([0-2]\d|3[01])(?=(?:\d\d){0,3}(?!\d).*/)", re.DOTALL
)
"""A key in a folder of a day, such as ``orders/2026/11/20/`` or ``date=2026-11-20/``: such folders sort by time."""


def skip_old_days(key: str, first: str) -> str:
    """The position at the first folder of a recent day, if the key is in a folder of an old day; else the key. Pure.

    Old days ended ``LISTING_DAYS`` before ``first``, an hour (``YYYY-MM-DDTHH``): files of a day may come later.
    """
    found = DAY.match(key)
    if found is None:
        return key
    recent = datetime.strptime(first, "%Y-%m-%dT%H").replace(tzinfo=UTC) - timedelta(days=LISTING_DAYS)
    if (found[2], found[4], found[6]) >= (f"{recent:%Y}", f"{recent:%m}", f"{recent:%d}"):
        return key
    return f"{found[1]}{recent:%Y}{found[3]}{recent:%m}{found[5]}{recent:%d}"
