"""Commands as processes that are stopped, run out of room, or lose their reader."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from factories import FEATURES, payments
from processes import COMMAND, run

ROWS = payments(200, seed=3)
TEXT = ROWS.to_csv(index=False).encode()
# Progress lines at once, so that a test sees when the work has begun.
DRIVER = (
    "from fewlier.cli import run, screen\n"
    "screen.SECONDS_BETWEEN_LINES = screen.SHARE_BETWEEN_LINES = 0\n"
    "run()"
)
STOPS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
each_stop = pytest.mark.parametrize(("number", "code"), STOPS, ids=["SIGINT", "SIGTERM"])


def started(*arguments, driver=DRIVER, **options):
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", driver, *map(str, arguments)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, **options)


def line_with(words, process):
    """Wait for a line on standard error; the process ends before if something is wrong."""
    seen = b""
    for line in process.stderr:
        seen += line
        if words in line:
            return seen
    raise AssertionError(seen.decode())


def ended(process, number):
    """Stop a process; return its exit code, standard output, and what it says to the end."""
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err.decode()


@pytest.mark.slow
def test_a_stopped_fit_says_so_and_leaves_what_was_there(tmp_path, folder):
    (tmp_path / "train.csv").write_bytes(TEXT)
    (tmp_path / "old.fewlier").write_bytes(b"old")
    before = folder()
    process = started(
        *("fit", tmp_path / "train.csv", "--label", "fraud", "--ignore", "id"),
        *("-o", tmp_path / "old.fewlier", "--max-epochs", 100_000),
    )
    line_with(b"fitting:", process)
    returned, out, err = ended(process, signal.SIGINT)
    assert (returned, out) == (130, b"")
    assert "Traceback" not in err
    assert "no model was written" in err.splitlines()[-1]
    assert folder() == before


@pytest.mark.slow
def test_a_stopped_update_says_so_and_leaves_the_model_as_it_was(model, tmp_path, folder):
    (tmp_path / "more.csv").write_bytes(TEXT)
    before = folder()
    # Epochs without end, of which each is told.
    endless = "from fewlier.modelfile import file; read = file.read_parameters\n"
    endless += "from fewlier import Training; long = {'training': Training(max_epochs=10**6)}\n"
    endless += "file.read_parameters = lambda *a: read(*a) | long\n"
    process = started(
        "update", model, tmp_path / "more.csv", "--label", "fraud", driver=endless + DRIVER
    )
    line_with(b"updating:", process)
    returned, out, err = ended(process, signal.SIGTERM)
    assert (returned, out) == (143, b"")
    assert "Traceback" not in err
    assert "the model is as before" in err.splitlines()[-1]
    assert folder() == before


def reading(command, model, output):
    """Start a command that has read a part of standard input, and waits for the rest."""
    small_blocks = "from fewlier.files import text; text.BLOCK_BYTES = 1000\n"
    small_blocks += "text.MAX_HEADER_BYTES = 1000\n"
    process = started(command, "-", "-m", model, "-o", output, driver=small_blocks + DRIVER)
    process.stdin.write(TEXT)
    process.stdin.flush()  # and not closed: there may be more to come
    return process


@pytest.mark.slow
def test_a_stopped_score_says_so_and_leaves_what_was_there(model, tmp_path, folder):
    (tmp_path / "out.csv").write_bytes(b"old")
    before = folder()
    process = reading("score", model, tmp_path / "out.csv")
    line_with(b"scoring:", process)
    assert any(path.name.endswith(".tmp") for path in tmp_path.iterdir())
    returned, out, err = ended(process, signal.SIGTERM)
    assert (returned, out) == (143, b"")
    assert "Traceback" not in err
    assert "no output was written" in err.splitlines()[-1]
    assert folder() == before


@pytest.mark.slow
def test_a_stopped_report_says_so_and_leaves_what_was_there(model, tmp_path, folder):
    (tmp_path / "old.html").write_bytes(b"old")
    before = folder()
    process = reading("report", model, tmp_path / "old.html")
    line_with(b"reporting:", process)
    returned, out, err = ended(process, signal.SIGINT)
    assert (returned, out) == (130, b"")
    assert "Traceback" not in err
    assert "no report was written" in err.splitlines()[-1]
    assert folder() == before


@pytest.mark.slow
@each_stop
def test_a_command_that_is_stopped_while_it_waits_for_input_ends_quietly(number, code, tmp_path):
    waiting = "import sys\nsys.stderr.write('ready\\n')\n" + DRIVER
    process = started("fit", "-", "-o", tmp_path / "m.fewlier", driver=waiting)
    line_with(b"ready", process)
    deadline = time.monotonic() + 60
    while not waits_for_input(process) and time.monotonic() < deadline:
        time.sleep(0.01)
    returned, out, err = ended(process, number)
    assert (returned, out) == (code, b"")
    assert "Traceback" not in err
    assert err.startswith("fewlier: ")
    assert list(tmp_path.iterdir()) == []


def waits_for_input(process):
    """Whether a process reads from its pipe, as Linux tells."""
    return "pipe_read" in Path(f"/proc/{process.pid}/wchan").read_text() or (
        Path(f"/proc/{process.pid}/syscall").read_text().startswith("0 0x0 ")
    )


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_ends_the_command_quietly(model, tmp_path):
    table = tmp_path / "new.csv"
    payments(5_000, seed=1)[FEATURES].to_csv(table, index=False)
    with subprocess.Popen(
        [COMMAND, "score", table, "-m", model], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        first = process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read().decode()
        assert process.wait() == 141
    assert first.startswith(b"amount,visits,city,anomaly_score")
    assert err == ""


def limited():
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


@pytest.mark.slow
@pytest.mark.parametrize("command", ["score", "fit", "update"])
def test_a_full_disk_is_told_and_leaves_what_was_there(command, model, tmp_path, folder):
    (tmp_path / "in.csv").write_bytes(TEXT)
    (tmp_path / "out.csv").write_bytes(b"old")
    before = folder()
    options = {
        "score": ["-m", model],
        "fit": ["--label", "fraud", "--ignore", "id", "--max-epochs", "1", "--selection", "best"],
        "update": ["--label", "fraud"],
    }[command]
    inputs = [model, tmp_path / "in.csv"] if command == "update" else [tmp_path / "in.csv"]
    done = run(*(command, *inputs, *options, "-o", tmp_path / "out.csv"), preexec_fn=limited)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert "File too large" in done.stderr
    assert str(tmp_path / "out.csv") in done.stderr
    assert folder() == before


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's full device")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["score", "in.csv", "-m", "{model}"], "'-': No space left on device"),
        (["inspect", "{model}"], "standard output must be writable; got: No space left"),
        (["--help"], "standard output must be writable; got: No space left"),
    ],
)
def test_a_full_standard_output_is_told(arguments, message, model, tmp_path):
    (tmp_path / "in.csv").write_bytes(TEXT)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [COMMAND, *(argument.format(model=model) for argument in arguments)],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_full_tmpfs_is_told_and_leaves_it_empty(model, fewlier, tmp_path):
    (tmp_path / "in.csv").write_bytes(TEXT)
    (tmp_path / "disk").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(tmp_path / "disk")]
    try:
        is_mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        is_mounted = False
    if not is_mounted:
        pytest.skip("mounting a small file system is not permitted")
    try:
        done = fewlier("score", tmp_path / "in.csv", "-m", model, "-o", tmp_path / "disk/out.csv")
        left = os.listdir(tmp_path / "disk")  # noqa: PTH208 - names
    finally:
        subprocess.run(["umount", tmp_path / "disk"], check=True)
    assert (done.code, done.out, left) == (2, b"", [])
    assert "No space left on device. Nothing was written; choose another path" in done.err


def test_a_device_is_written_to_and_stays_one(model, fewlier):
    done = fewlier("score", "-", "-m", model, "-o", os.devnull, stdin=TEXT)
    assert (done.code, done.out) == (0, b"")
    assert Path(os.devnull).is_char_device()


def test_an_output_is_replaced_and_keeps_its_mode(model, fewlier, tmp_path):
    out = tmp_path / "out.parquet"
    out.write_bytes(b"old")
    out.chmod(0o640)
    assert fewlier("score", "-", "-m", model, "-o", out, stdin=TEXT).code == 0
    assert pq.read_metadata(out).num_rows == len(ROWS)
    assert out.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fraud.fewlier", "out.parquet"]
