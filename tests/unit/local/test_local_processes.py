"""Ending a session ends all of its processes and no other."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from local.processes import end_session, has_ended, kill_session

FAMILY = """
import json, os, sys, time

def child(prepare):
    pid = os.fork()
    if pid == 0:
        prepare()
        time.sleep(600)
    return pid

def orphan():
    # Its parent ends at once, so the leader does not have it among its descendants.
    read, write = os.pipe()
    parent = os.fork()
    if parent == 0:
        os.write(write, str(child(lambda: None)).encode())
        os._exit(0)
    os.waitpid(parent, 0)
    return int(os.read(read, 20))

plain = child(lambda: None)
group = child(lambda: os.setpgid(0, 0))
print(json.dumps({"plain": plain, "group": group, "orphan": orphan()}), flush=True)
time.sleep(600)
"""
"""A process with three children: one in its process group, one in its own, one whose parent has ended."""


@pytest.fixture
def family() -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """The leader of a session, and the ids of all other processes of the session."""
    with subprocess.Popen(
        [sys.executable, "-c", FAMILY], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as leader:
        assert leader.stdout is not None
        yield leader, list(json.loads(leader.stdout.readline()).values())
        kill_session(leader.pid)


def test_end_of_a_session_is_the_end_of_all_its_processes_and_of_no_other(
    family: tuple[subprocess.Popen[str], list[int]],
) -> None:
    # Given a session with processes that left its process group or lost their parent, and another one
    leader, others = family
    assert not any(has_ended(pid) for pid in (leader.pid, *others))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as other:
        # When it is ended, then none of its processes is running on return, and the exit code is still available
        end_session(leader.pid)
        assert all(has_ended(pid) for pid in (leader.pid, *others))
        assert leader.wait() == -9
        # And the other one continues
        assert not has_ended(other.pid)
        other.communicate(b"\n")
        assert other.returncode == 0
