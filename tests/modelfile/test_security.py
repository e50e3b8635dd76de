"""What docs/PROMISES.md promises of model files: no code, no network, little memory."""

import copy
import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from fewlier.modelfile.container import MANIFEST, MAX_BYTES, MAX_VALUES, WEIGHTS

GOLDEN = Path(__file__).parents[1] / "golden" / "version_1.fewlier"
MEMORY = 400 * 2**20

# Imports under watch. Then loads and scores once, so that whatever is imported late is imported,
# and again under watch.
WATCHED = """
import sys
seen = []
is_watching = True
sys.addaudithook(lambda event, arguments: seen.append(event) if is_watching else None)

import fewlier.cli
from fewlier import AnomalyDetector

is_watching = False
assert "import" in seen
connections = {event for event in seen if event.startswith(("socket.connect", "socket.getaddr"))}
assert not connections, f"the import caused {sorted(connections)}"

import json
import pandas as pd

path, rows = sys.argv[1], pd.DataFrame(json.loads(sys.argv[2]))
unsafe = ("socket.", "pickle.", "os.system", "os.exec", "os.posix_spawn", "subprocess.", "ctypes.",
          "exec", "import", "marshal.", "urllib.", "shutil.")

def use():
    detector = AnomalyDetector.load(path)
    detector.anomaly_score(rows), detector.predict(rows), detector.p_value(rows)
    detector.explain(rows).top(row=0)

use()
seen.clear()
is_watching = True
use()
is_watching = False
assert "open" in seen, seen
found = sorted({event for event in seen if event.startswith(unsafe)})
assert not found, f"the load caused {found}"
"""

# Refuses files within a limit on memory that starts where a loaded model leaves it.
LIMITED = """
import resource, sys
from pathlib import Path
from fewlier import AnomalyDetector, FormatError

golden, limit, *paths = sys.argv[1:]
AnomalyDetector.load(golden)
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + int(limit)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for path in paths:
    try:
        AnomalyDetector.load(path)
    except FormatError:
        continue
    sys.exit(f"{path} was loaded")
"""


def run(code, *arguments, timeout=120):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)


@pytest.mark.slow
def test_importing_loading_and_scoring_run_no_code_and_open_no_connection():
    expected = json.loads(GOLDEN.with_suffix(".json").read_text("utf-8"))
    done = run(WATCHED, GOLDEN, json.dumps(expected["rows"]))
    assert done.returncode == 0, done.stderr


def rewritten(path, manifest, weights, compression=zipfile.ZIP_STORED):
    content = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w", compression, compresslevel=1) as archive:
        archive.writestr(MANIFEST, content)
        archive.writestr(WEIGHTS, weights)
    return path


def filled(start, end):
    """Return a manifest as long as one may be, most of it one text."""
    return start + b"x" * (MAX_BYTES[MANIFEST] - len(start) - len(end)) + end


def listed(item):
    """Return a manifest with as many values as one may have."""
    n_items = MAX_VALUES // sum(map(item.count, (b",", b"[", b"{"))) - 10
    return b'{"format": [' + item * n_items + b"1]}"


def keyed(n):
    return b"{" + b",".join(b'"key %d": 1.5' % i for i in range(n)) + b"}"


@pytest.fixture(scope="module")
def bombs(tmp_path_factory):
    """Write small or permitted files that ask for as much memory as they can."""
    folder = tmp_path_factory.mktemp("bombs")
    with zipfile.ZipFile(GOLDEN) as archive:
        manifest, weights = json.loads(archive.read(MANIFEST)), archive.read(WEIGHTS)
    zeros = b"0" * 2**28
    paths = [rewritten(folder / "deflated", zeros, zeros, zipfile.ZIP_DEFLATED)]
    contents = {
        "wide characters": filled('{"format": "\U0001f600'.encode(), b'"}'),
        "escaped characters": filled(b'{"format": "\\ud83d\\ude00', b'"}'),
        "records": listed(b'{"a": 1},'),
        "lists": listed(b"[1],"),
        "texts": listed(b'"ab",'),
        "keys": keyed(MAX_VALUES - 10),
        "nested": b'{"a": [' * 10**5,
    }
    paths += [rewritten(folder / name, content, weights) for name, content in contents.items()]
    sizes = {"n_orderings": 10**9, "n_components": 10**9, "hidden": [10**9]}
    for name, size in sizes.items():
        record = copy.deepcopy(manifest)
        record["model"]["ensemble"]["density"][name] = size
        paths += [rewritten(folder / name, record, weights)]
        paths += [claiming(rewritten(folder / f"claimed {name}", record, weights))]
    many = manifest | {"more": json.loads(keyed(MAX_VALUES // 2))}
    return [*paths, rewritten(folder / "more", many, weights)]


def claiming(path):
    """Let the directory of a file say that its weights are almost 4 GB."""
    content = bytearray(path.read_bytes())
    record = content.rindex(b"PK\x01\x02")
    content[record + 20 : record + 28] = struct.pack("<LL", 2**32 - 2, 2**32 - 2)
    path.write_bytes(content)
    return path


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_no_file_takes_much_memory_or_time_to_refuse(bombs):
    done = run(LIMITED, GOLDEN, MEMORY, *bombs, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_the_limit_on_memory_would_be_noticed(bombs):
    done = run(LIMITED, GOLDEN, 50 * 2**20, *bombs)
    assert "MemoryError" in done.stderr
