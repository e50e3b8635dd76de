"""Coverage-guided fuzzing of the model-file reader: `make fuzz`.

Every input is a way to change a golden file. Whatever it makes must be refused as a `FormatError`
or load, and what loads must survive being saved and loaded again. Anything else, a hang or memory
beyond the limit is a finding, which libFuzzer writes to a file and ends with.

    python tests/fuzz/fuzz_model_file.py CORPUS_FOLDER [libFuzzer options]

The first byte of an input chooses what the rest stands for (`MODES`); the corpus starts with one
unchanged input each.
"""

import copy
import io
import json
import os
import struct
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import atheris

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported, as in tests/conftest.py

with atheris.instrument_imports(include=["fewlier", "zipfile"]):
    from fewlier import AnomalyDetector, FormatError
    from fewlier.modelfile.container import MANIFEST, WEIGHTS

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.fewlier"))

MAX_EDITS = 2  # more are refused for the first of them
VALUES = [
    *(None, True, "", "made", "category", "\ud800", [], {}, [[]]),
    *(0, 1, -1, 2, 2**31, 10**17, 0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, -1e300),
]


def zipped(manifest: bytes, weights: bytes) -> bytes:
    """Put parts into a zip whose checksums are right."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(MANIFEST), manifest)
        archive.writestr(zipfile.ZipInfo(WEIGHTS), weights)
    return file.getvalue()


def edited(content: bytes, data: bytes) -> bytes:
    """Change a JSON document at some places, and to values, that the data choose."""
    document = json.loads(content)
    provider = atheris.FuzzedDataProvider(data)
    for _ in range(MAX_EDITS):
        if provider.remaining_bytes() and document:
            edit(*place(document, provider), provider)
    return json.dumps(document).encode()


def place(document: Any, provider: atheris.FuzzedDataProvider) -> tuple[Any, Any]:
    """Walk into a JSON document; return the container it ends in and a key of that."""
    while True:
        keys = list(document) if isinstance(document, dict) else range(len(document))
        key = keys[provider.ConsumeIntInRange(0, len(keys) - 1)]
        is_container = isinstance(document[key], dict | list) and document[key]
        if not is_container or provider.ConsumeIntInRange(0, 7) == 0:
            return document, key
        document = document[key]


def edit(container: Any, key: Any, provider: atheris.FuzzedDataProvider) -> None:
    """Replace, remove or repeat a value of a JSON document."""
    match provider.ConsumeIntInRange(0, 7):
        case 0:
            del container[key]
        case 1 if isinstance(container, list):
            container.append(copy.deepcopy(container[key]))
        case 2:
            container[key] = provider.ConsumeInt(4)
        case 3:
            container[key] = provider.ConsumeRegularFloat()
        case 4:
            container[key] = provider.ConsumeUnicode(8)
        case _:
            container[key] = copy.deepcopy(provider.PickValueInList(VALUES))


def changed(body: bytes, data: bytes) -> bytes:
    """Overwrite tensors: two bytes say where, the next four with what."""
    content = bytearray(body)
    for start in range(0, len(data) - 5, 6):
        place = int.from_bytes(data[start : start + 2], "little") % (len(content) - 3)
        content[place : place + 4] = data[start + 2 : start + 6]
    return bytes(content)


def modes(path: Path) -> list[tuple[Callable[[bytes], bytes], bytes]]:
    """List what the rest of an input makes of a golden file, and the rest that changes nothing."""
    with zipfile.ZipFile(path) as golden:
        manifest, weights = golden.read(MANIFEST), golden.read(WEIGHTS)
    start = 8 + struct.unpack("<Q", weights[:8])[0]
    header, body = weights[8:start], weights[start:]

    def with_header(content: bytes) -> bytes:
        return struct.pack("<Q", len(content)) + content + body

    return [
        (lambda data: data, path.read_bytes()),
        (lambda data: zipped(data, weights), manifest),
        (lambda data: zipped(manifest, with_header(data)), header),
        (lambda data: zipped(edited(manifest, data), weights), b""),
        (lambda data: zipped(manifest, with_header(edited(header, data))), b""),
        (lambda data: zipped(manifest, weights[:start] + changed(body, data)), b""),
    ]


MODES = [mode for path in GOLDEN for mode in modes(path)]
SHORT = [number for number, (_, unchanged) in enumerate(MODES) if not unchanged]


def check(data: bytes) -> None:
    """Load what an input makes of a golden file; nothing but a `FormatError` may be raised."""
    if not data:
        return
    change, _ = MODES[data[0] % len(MODES)]
    FILE.write_bytes(change(data[1:]))
    try:
        detector = AnomalyDetector.load(FILE)
    except FormatError as error:
        str(error).encode()
        return
    str(detector.summary_)
    detector.save(FILE)
    AnomalyDetector.load(FILE)


def mutated(data: bytes, max_size: int, seed: int) -> bytes:
    """Mutate an input as libFuzzer does or, every other time, draw a short one for `edited` anew.

    What libFuzzer keeps are inputs that reach new code; few of them are near any one value.
    """
    random = Random(seed)
    if random.random() < 0.5:
        return atheris.Mutate(data, max_size)
    return bytes([random.choice(SHORT)]) + random.randbytes(random.randint(1, 24))


def main() -> None:
    """Write the first inputs into the corpus folder and fuzz."""
    corpus = Path(sys.argv[1])
    corpus.mkdir(parents=True, exist_ok=True)
    for mode, (_, unchanged) in enumerate(MODES):
        (corpus / f"unchanged-{mode}").write_bytes(bytes([mode]) + unchanged)
    options = [
        "-timeout=10",
        "-rss_limit_mb=4000",  # torch takes 400, and atheris itself some 10 more per 1000 runs
        f"-max_len={2 * max(path.stat().st_size for path in GOLDEN)}",
        "-len_control=0",
        "-keep_seed=1",  # though the first inputs, of different lengths, all cover the same
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, *sys.argv[1:]], check, custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        FILE = Path(folder) / "fuzzed.fewlier"
        main()
