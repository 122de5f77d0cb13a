"""How a command that stays in the foreground is ended from outside."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, ``local down`` and the end of a session, a terminal that is closed."""


@contextmanager
def ended_by_signal() -> Iterator[None]:
    """The first signal ends the block as Ctrl-C does; further ones do not disturb its end."""

    def end(_number: int, _frame: Any) -> None:  # noqa: ANN401
        for number in END_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in END_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
