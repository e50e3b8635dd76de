"""The shape of the source: rooms import one way, and little of fewlier."""

import ast
import subprocess
import sys
from pathlib import Path

from test_layers import body_lines, imported, is_abstract_final_or_data, nodes

import fewlier

ROOT = Path(__file__).parents[1] / "src" / "fewlier_bench"
MODULES = {
    path.relative_to(ROOT): ast.parse(path.read_text("utf-8"))
    for path in sorted(ROOT.rglob("*.py"))
}

FLOORS = [  # bottom to top; a room imports only from floors below its own
    {"data", "methods"},
    {"runs", "prior"},
    {"pages"},
    {"reproduction", "comparison"},
    {"studies"},
    {"cli"},
    {"__main__"},
]
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}

# What the benchmark uses of fewlier: its public names, tables, errors, files written whole.
FEWLIER = {*fewlier.__all__, "__version__", "errors", "files", "process.signals", "table"}
# How several splits are fitted as one stack is known to one module; others name what it returns.
FITS = {"score.model.FittedModel", "training.history.MemberHistory"}
MORE = {
    "cli": {
        "cli.prepare_streams",
        "cli.ending",
        "cli.inputs",
        "cli.options",
        "cli.screen",
    },  # no commands
    "runs/on_ray.py": {"engines.ray.connect"},
    # Plans, trains and builds, several tables at a time.
    "runs/stacks.py": {*FITS, "density", "fitting", "score.ensemble", "training"},
    "reproduction/detector_jobs.py": {*FITS, "fitting.recipe.read_seed"},
    "studies/label_page.py": {"labelling"},
    "studies/onnx.py": {"export.onnx"},
    # Builds scores without one of their parts.
    "studies/parts.py": {"density.rows", "fitting.fit", "score", "training.plan.Plan"},
    "studies/scale.py": {"scoring.batches.BatchScorer"},
    "studies/speed.py": {"density.rows", "fitting", "process.threads", "score.part", "training"},
}


def is_of(name, packages):
    return any(f"{name}.".startswith(f"{package}.") for package in packages)


def test_rooms_import_from_floors_below_and_only_what_is_listed_of_fewlier():
    for file, tree in MODULES.items():
        here = file.with_suffix("").parts[0]
        for name in imported(tree):
            package, _, rest = name.partition(".")
            there = rest.partition(".")[0]
            if package == "fewlier":
                more = MORE.get(file.as_posix(), set()) | MORE.get(here, set())
                assert is_of(rest, FEWLIER | more), f"{file} must not use fewlier.{rest}"
            elif package == "fewlier_bench" and there != here and here != "__init__":
                is_below = there in {"cli"} if here == "__main__" else FLOOR[there] < FLOOR[here]
                assert is_below, f"{file} must not import {name}"


def test_fewlier_knows_nothing_of_its_benchmark():
    source = ROOT.parents[2] / "src" / "fewlier"
    for path in source.rglob("*.py"):
        assert not any(
            name.startswith("fewlier_bench")
            for name in imported(ast.parse(path.read_text("utf-8")))
        ), path.name


def test_commands_start_without_torch():
    code = "import sys, fewlier_bench.cli.app; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_functions_and_files_are_short_and_classes_abstract_final_or_data():
    for file, tree in MODULES.items():
        assert len((ROOT / file).read_text("utf-8").splitlines()) <= 350, file
        for function in nodes(tree, ast.FunctionDef):
            assert body_lines(function) <= 60, f"{file}: {function.name}"
        for cls in nodes(tree, ast.ClassDef):
            assert is_abstract_final_or_data(cls), f"{file}: {cls.name}"
