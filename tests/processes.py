"""The command line as a process of its own, for what only a process shows."""

import contextlib
import os
import re
import signal
import subprocess
import sysconfig
import time
from pathlib import Path
from typing import NamedTuple

COMMAND = Path(sysconfig.get_path("scripts")) / "fewlier"
TERMINATION = 1 << signal.SIGTERM - 1


class Done(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: bytes
    err: str


def run(*arguments, command=(COMMAND,), **options):
    """Run a command to its end."""
    command = [*command, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def plain(text):
    """Return the words alone, without colours and line breaks, which depend on the terminal."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())


def start(words, folder, command=(COMMAND,), **options):
    """Start a command in a group of processes of its own, and wait until it is in Python."""
    pipe = subprocess.PIPE
    options |= {"cwd": folder, "stdout": pipe, "stderr": pipe, "start_new_session": True}
    process = subprocess.Popen([*command, *words.split()], **options)
    status = Path(f"/proc/{process.pid}/status")
    while not int(re.search(r"SigCgt:\s+(\w+)", status.read_text())[1], 16) & TERMINATION:
        assert process.poll() is None
        time.sleep(0.001)
    return process


def stop(process, number):
    """Send a signal, as a terminal does to all processes or the system to one; wait for the end."""
    with contextlib.suppress(ProcessLookupError):
        send = os.killpg if number == signal.SIGINT else os.kill
        send(process.pid, number)
    out, err = process.communicate(timeout=60)  # to the end of the last process that has a pipe
    return out, err.decode()


def assert_gone(group):
    """Ask that no process of a group is left; a killed one may take a moment to vanish."""
    for _ in range(1000):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    raise AssertionError(f"processes of {group} are left")
