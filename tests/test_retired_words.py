"""Words that the project has given up, each for one that a stranger would search for."""

import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "bench" / "src").rglob("*.py"))]

# What stands for each now. A name that comes back for another thing is as confusing as before.
RETIRED = {
    "BLOCK_ROWS": "chunks have rows, batches arrive",
    "CellError": "UserError with a row",
    "Desk": "PageApi",
    "FileError": "UserError with a file",
    "FormError": "UserError with readings",
    "Given": "TrainingRows",
    "Here": "work on this machine needs no name",
    "Insight": "Posterior",
    "Looked": "RowFeatures",
    "MOSTLY": "MIN_READ_SHARE",
    "ParameterError": "UserError with a parameter",
    "Piece": "batch or chunk",
    "ReadSoFar": "ReadProgress",
    "RowFacts": "Scored",
    "ScoredBatch": "Scored",
    "Side": "View",
    "Subject": "SessionTable",
    "TOGETHER": "MAX_TURN_BYTES",
    "Tell": "Progress",
    "TopRows": "Reservoir",
    "Worth": "KernelScore",
    "farewell": "said_if_stopped",
    "guarantee_of": "promise_of",
    "hand_over": "release_signals",
    "in_tiles": "in_chunks",
    "is_warm": "an update is a fit",
    "lesson": "node_weights",
    "put_by": "a temporary file",
    "read_given": "read_training_rows",
    "read_told": "labels_of_answers",
    "replacing_folder": "a folder marks itself",
    "untold": "no_progress",
}
RETIRED_MODULES = {
    "aspects": "date_parts",
    "bagged": "supervised",
    "desk": "api",
    "fits": "background",
    "flags": "options",
    "forms": "text_forms",
    "given": "training_rows",
    "insight": "choice",
    "keys": "terminal",
    "lines": "log",
    "passes": "member",
    "roles": "plan",
    "room": "memory",
    "shelf": "model",
    "shown": "escape",
    "subject": "session_table",
    "told": "labels",
    "usual": "session_table",
    "values": "column_values",
    "worth": "kernel",
}
OTHER_BOUND = re.compile(
    r"_?(MOST|LEAST|LARGEST|SMALLEST|HIGHEST|LOWEST|FEWEST|NARROWEST|FARTHEST)(_|$)"
)


def names(path):
    """Return the names in a file, with the line where each is first."""
    found = {}
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.NAME:
                found.setdefault(token.string, token.start[0])
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_retired_word_names_anything(path):
    found = {
        f"line {line}: {name}": RETIRED[name]
        for name, line in names(path).items()
        if name in RETIRED
    }
    assert not found


def test_bounds_are_called_min_and_max():
    assert {
        f"{path.name}:{line} {name}"
        for path in FILES
        for name, line in names(path).items()
        if OTHER_BOUND.match(name)
    } == set()


def test_no_module_has_a_retired_name():
    assert {path.stem for path in FILES} & RETIRED_MODULES.keys() == set()
