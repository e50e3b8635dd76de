"""What must happen whole when a program is stopped; `tests/cli/test_signals.py` stops real ones."""

import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.slow

START = "import os, sys, threading, time\nfrom fewlier.process import signals\n"
KILL = "os.kill(os.getpid(), signal.SIGTERM)\n"
LONG = 60.0


def run(code, **options):
    return subprocess.run(
        [sys.executable, "-c", START + "import signal\n" + code],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
        **options,
    )


def test_it_ends_from_a_call_that_never_returns():
    code = f"signals.handle_signals()\nthreading.Timer(0.1, lambda: {KILL.strip()}).start()\n"
    done = run(code + "lock = threading.Lock(); lock.acquire(); lock.acquire()")
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "fewlier: stopped.\n")


def test_the_innermost_sentence_is_said_and_only_inside_its_block():
    code = "signals.handle_signals()\nwith signals.said_if_stopped(lambda: 'one.'):\n"
    code += (
        "    with signals.said_if_stopped(lambda: 'two.'): pass\n    " + KILL + "    time.sleep(60)"
    )
    assert run(code).stderr == "fewlier: one.\n"


def test_a_step_that_must_happen_whole_does_and_none_begins_after(tmp_path):
    code = "signals.handle_signals()\nwith signals.uninterrupted():\n    " + KILL
    code += "    time.sleep(0.3)\n    open('first', 'x').close()\n"
    code += "time.sleep(0.3)\nwith signals.uninterrupted():\n"
    code += "    open('second', 'x').close()\ntime.sleep(60)"
    done = run(code, cwd=tmp_path)
    assert done.returncode == 143
    assert [path.name for path in tmp_path.iterdir()] == ["first"]


def test_files_and_folders_that_are_not_finished_are_removed(tmp_path):
    code = (
        "from fewlier.files.atomic import replacing\nsignals.handle_signals()\nos.mkdir('folder')\n"
    )
    code += "open('folder/file', 'x').close()\nos.mkdir('kept')\n"
    code += "with signals.removed_if_stopped('kept'): pass\n"
    code += (
        "with signals.removed_if_stopped('folder'), replacing('a') as file:\n    os.chdir('/')\n"
    )
    code += "    file.write(b'new')\n    " + KILL + "    time.sleep(60)"
    (tmp_path / "a").write_bytes(b"old")
    assert run(code, cwd=tmp_path).returncode == 143
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "kept"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_nothing_goes_on_once_a_signal_has_come():
    code = "signals.handle_signals()\n" + KILL + "print('more', flush=True)\nos._exit(0)"
    done = run(code)
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "fewlier: stopped.\n")


@pytest.mark.parametrize("stream", ["closed", "full"])
def test_it_ends_where_nobody_listens(stream):
    code = "signals.handle_signals()\n"
    code += "os.close(2)\n" if stream == "closed" else "os.set_blocking(2, False)\n"
    if stream == "full":
        code += "try:\n    while True: os.write(2, b'x' * 4096)\n"
        code += "except BlockingIOError: os.set_blocking(2, True)\n"
    code += "os.write(1, b'ready')\ntime.sleep(60)"
    command = [sys.executable, "-c", START + code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.read(5) == b"ready"
        process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + LONG
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert process.returncode == 130
