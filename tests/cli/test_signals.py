"""Signals at any moment: one sentence or none, 130 or 143, and nothing left behind."""

import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from factories import payments
from processes import assert_gone, start, stop

N_MOMENTS = 8
EARLIEST, LATEST = 0.001, 2.0  # seconds after the program has begun

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="asks Linux when to send a signal"),
]

# None comes to its end before the last moment, but for those that have nothing to do.
COMMANDS = {
    "fit": "fit rows.csv --label fraud --ignore id -o out.fewlier --max-epochs 100000",
    "score": "score many.csv -m model.fewlier -o out.csv",
    "explain": "explain many.csv -m model.fewlier",
    "evaluate": "evaluate many.csv -m model.fewlier --label fraud",
    "report": "report many.csv -m model.fewlier -o out.html",
    "update": "update model.fewlier many.csv --label fraud -o out.fewlier",
    "threshold": "threshold model.fewlier --false-alarm-rate 0.1",
    "inspect": "inspect model.fewlier",
    "demo": "demo",
}


@pytest.fixture(scope="module")
def inputs(model_bytes):
    """Return a function that writes the files that the commands read."""
    contents = {
        "model.fewlier": model_bytes,
        "rows.csv": payments().to_csv(index=False).encode(),
        "many.csv": payments(20_000).to_csv(index=False).encode(),
    }

    def write(folder):
        folder.mkdir()
        for name, content in contents.items():
            (folder / name).write_bytes(content)
        return folder

    return write


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def check(words, folder, moment, number):
    """Stop a command at a moment, and look at what it says and leaves."""
    before = files(folder), (folder / "model.fewlier").read_bytes()
    process = start(words, folder)
    time.sleep(moment)
    _, err = stop(process, number)
    assert_gone(process.pid)
    told = f"{words} after {moment:.3f} s: {process.returncode} {err}"
    if process.returncode == 0:  # it was done before
        assert "stopped" not in err, told
        return
    assert process.returncode == 128 + number, told
    *notes, last = err.splitlines() or ["fewlier: stopped"]
    assert last.startswith("fewlier: stopped"), told
    assert all(note.startswith("fewlier: ") and "stopped" not in note for note in notes), told
    assert (files(folder), (folder / "model.fewlier").read_bytes()) == before, told


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_may_be_stopped_at_any_moment(command, inputs, tmp_path):
    rng = random.Random(command)
    # The same in every run, and as many in the first hundredth of a second as in the next tenth.
    shares = [(i + rng.random()) / N_MOMENTS for i in range(N_MOMENTS)]
    moments = [EARLIEST * (LATEST / EARLIEST) ** share for share in shares]

    def one(i):
        number = (signal.SIGINT, signal.SIGTERM)[i % 2]
        check(COMMANDS[command], inputs(tmp_path / str(i)), moments[i], number)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, range(N_MOMENTS)))


def test_a_terminal_that_closes_ends_a_command_too(inputs, tmp_path):
    check(COMMANDS["fit"], inputs(tmp_path / "a"), 0.5, signal.SIGHUP)


def test_what_was_told_to_ignore_a_signal_ignores_it(model, tmp_path):
    process = start(
        f"inspect {model}",
        tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),  # as nohup does
    )
    for _ in range(10):
        process.send_signal(signal.SIGHUP)
        time.sleep(0.01)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert b"columns" in out


def test_nothing_large_is_loaded_before_signals_are_heard():
    code = "import sys, fewlier.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"typer", "click", "rich", "numpy", "pyarrow", "torch", "sklearn", "email"}
