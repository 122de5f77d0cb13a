"""Ending a process together with everything it started."""

import os
import signal
import time
from contextlib import suppress

import psutil

_KILL_ROUNDS = 3
_MAX_WAIT_SECONDS = 5.0
_POLL_SECONDS = 0.01


def kill_session(leader: int) -> None:
    """SIGKILL every process of the session that ``leader`` opened, the leader last; does not wait for their end."""
    kill_followers(leader)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def kill_followers(leader: int) -> None:
    """SIGKILL every process of the session that ``leader`` opened, but not the leader.

    The session holds all descendants that did not open their own, also those whose parent has ended. The process group
    is not enough: Spark's Python workers leave it. There are several rounds, because a process can fork while others
    are being killed.
    """
    for _ in range(_KILL_ROUNDS):
        members = [process for process in _live_members(leader) if process.pid != leader]
        for process in members:
            with suppress(psutil.Error):
                process.kill()
        if not members:
            break


def end_session(leader: int) -> None:
    """``kill_session``, then wait until all of its processes have ended, at most 5 seconds.

    Afterwards no process of the session writes files: a process that is being killed can still finish a system call.
    A process must not call it for its own session: it would be killed before it could wait.
    """
    kill_session(leader)
    deadline = time.monotonic() + _MAX_WAIT_SECONDS
    while _live_members(leader) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def has_ended(pid: int) -> bool:
    """Whether no thread of the process runs any more. Its parent may still have to read its exit code."""
    try:
        process = psutil.Process(pid)
        # A zombie with several threads is a main thread that ended before the others.
        return process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1
    except psutil.NoSuchProcess:
        return True


def _live_members(leader: int) -> list[psutil.Process]:
    members = []
    for pid in psutil.pids():
        with suppress(ProcessLookupError, PermissionError, psutil.Error):
            # 0 is the kernel; getsid would return this process.
            if pid != 0 and os.getsid(pid) == leader and not has_ended(pid):
                members.append(psutil.Process(pid))
    return members
