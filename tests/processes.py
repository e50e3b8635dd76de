"""The command line as a process of its own, for what only a process shows."""

import re
import subprocess
import sysconfig
from pathlib import Path

COMMAND = Path(sysconfig.get_path("scripts")) / "fewlier"


def run(*arguments, **options):
    """Run a command to its end."""
    command = [COMMAND, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def plain(text):
    """Return the words alone, without colours and line breaks, which depend on the terminal."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())
