"""Ending a process together with everything it started."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_ROUNDS = 3


def kill_session(leader: int) -> None:
    """SIGKILL every process of the session that ``leader`` opened, the leader last.

    The group alone would not do: Spark's Python workers leave it. Repeated, because a process can fork while its
    siblings are being killed. Without /proc only the leader's process group is killed.
    """
    for _ in range(_ROUNDS):
        members = [pid for pid in _session_members(leader) if pid != leader]
        for pid in members:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not members:
            break
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _session_members(leader: int) -> list[int]:
    members = []
    for stat in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            # The command name, in brackets, may itself hold spaces and brackets.
            state, _parent, _group, session, *_ = stat.read_text().rsplit(")", 1)[1].split()
            if int(session) == leader and state != "Z":
                members.append(int(stat.parent.name))
    return members
