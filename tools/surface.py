"""List what users rely on, as docs/STABILITY.md promises it: `python tools/surface.py [--write]`.

tests/golden/surface.txt is the list of a release, which `--write` writes. tests/test_surface.py
asks that CHANGELOG.md tells of every difference since, each by its name.
"""

import inspect
import io
import json
import os
import re
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from pyarrow import csv
from typer.main import get_command

import fewlier
from fewlier import AnomalyDetector, batches, cli, plot, stopping
from fewlier.cli import ending
from fewlier.cli.app import app
from fewlier.labelling import journal
from fewlier.modelfile import container
from fewlier.service.limits import Limits
from fewlier.service.openapi import describe
from fewlier.service.shelf import Served

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "golden" / "surface.txt"
CHANGELOG = ROOT / "CHANGELOG.md"
HEADING = "Public surface of fewlier "
# What is called, and what calls return.
CALLED = {
    "fewlier": tuple(fewlier.__all__),
    "fewlier.plot": tuple(plot.__all__),
    "fewlier.batches": ("BatchScorer",),
    "fewlier.engines.ray": ("score",),
    "fewlier.engines.spark": ("score", "to_udf"),
    "fewlier.mlflow": ("log_model", "save_model"),
    "fewlier.notebook": ("label",),
    "fewlier.table.label_column": ("LabelColumn",),
}
RETURNED = {
    "fewlier.decision.drift": ("Change", "Drift"),
    "fewlier.labelling.question": ("Progress", "Question", "Ranked"),
    "fewlier.reasons.explanation": ("Explanation",),
    "fewlier.reasons.reason": ("Reason",),
    "fewlier.summary": ("Summary",),
}
# Methods that other modules of fewlier call, and those that scikit-learn adds.
INTERNAL = re.compile(
    "after|build|check|checked|followed_by|from_state|lay_out|read|require|state|set_.*_request"
)
COMMANDS = get_command(app).commands
COLUMNS, CITIES, KINDS = ("amount", "visits", "city"), ("Bern", "Oslo", "Rome"), ("fraud", "error")
LABEL = ("--label", "odd", "--anomaly", KINDS[0], "--anomaly", KINDS[1])


def surface() -> list[str]:
    """Return a line for everything, such as `fewlier.Session(path) = None`."""
    lines = [*python_names(), *options(), *json_keys(), *fixed()]
    return sorted(set(lines))


def python_names() -> Iterator[str]:
    """List classes, functions, parameters, methods and attributes."""
    for module, names in (*CALLED.items(), *RETURNED.items()):
        for name in names:
            found, path = getattr(import_module(module), name), f"{module}.{name}"
            yield path
            is_class = inspect.isclass(found)
            if module in CALLED and not (is_class and issubclass(found, Exception)):
                yield from parameters(path, found)
            if is_class:
                yield from members(path, found)


def parameters(path: str, call: Callable[..., object]) -> Iterator[str]:
    """List what a class or a function takes."""
    for name, parameter in inspect.signature(call).parameters.items():
        if name in ("self", "cls"):
            continue
        default = parameter.default
        is_plain = isinstance(default, bool | int | float | str | tuple | None)
        shown = f" = {default!r}" if is_plain else ""
        yield f"{path}({name}){'' if default is parameter.empty else shown}"


def members(path: str, owner: type) -> Iterator[str]:
    """List methods and attributes that fewlier defines, and fields that the docstring has."""
    documented = (inspect.getdoc(owner) or "").partition("Attributes\n----------\n")[2]
    for names in re.findall(r"^(\w+(?:, \w+)*) : ", documented, flags=re.MULTILINE):
        yield from (f"{path}.{name}" for name in names.split(", "))
    yield from (f"{path}.{name}" for name in getattr(owner, "_fields", ()))
    own = [base for base in owner.__mro__ if base.__module__.startswith("fewlier")]
    for name, member in {name: vars(base)[name] for base in own for name in vars(base)}.items():
        if name.startswith("_") or INTERNAL.fullmatch(name):
            continue
        if isinstance(member, property | cached_property):
            yield f"{path}.{name}"
        elif callable(getattr(owner, name)) and hasattr(member, "__get__"):
            yield f"{path}.{name}()"
            yield from parameters(f"{path}.{name}", getattr(owner, name))


def options() -> Iterator[str]:
    """List commands with their arguments and options."""
    for command, about in COMMANDS.items():
        yield f"$ fewlier {command}"
        for option in about.params:
            default = "" if option.default is None else f" = {option.default}"
            for flag in (*option.opts, *option.secondary_opts):
                yield f"$ fewlier {command} {flag}{default}"


def json_keys() -> Iterator[str]:
    """List the keys of JSON, what a fitted detector has, and what the service answers."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for seed, name in enumerate(("rows.csv", "more.csv")):
            csv.write_csv(rows(seed), name)
        calls = {
            "check": ("rows.csv", *LABEL),
            "fit": ("rows.csv", *LABEL, "--max-epochs", "1", "-o", "a.fewlier"),
            "update": ("a.fewlier", "more.csv", *LABEL),
            "score": ("rows.csv", "-m", "a.fewlier", "-o", "scored.csv"),
            "explain": ("rows.csv", "-m", "a.fewlier"),
            "evaluate": ("rows.csv", "-m", "a.fewlier", *LABEL),
            "report": ("rows.csv", "-m", "a.fewlier", *LABEL, "-o", "report.html"),
            "threshold": ("a.fewlier", "--false-alarm-rate", "0.1"),
            "inspect": ("a.fewlier",),
            "label": ("rows.csv", "-m", "a.fewlier", "--terminal", "-o", "labels.jsonl"),
        }
        for command, words in calls.items():
            printed = json.loads(run(command, *words, "--json"))
            yield from (f"$ fewlier {command} --json: {key}" for key in keys(printed))
        detector = AnomalyDetector.load("a.fewlier")
    fitted = (name for name in vars(detector) if name[-1] == "_" != name[0])
    yield from (f"fewlier.AnomalyDetector.{name}" for name in fitted)
    served = Served("NAME", "", detector.model_, {}, counts=None)
    for path, methods in describe([served], Limits(), is_folder=False)["paths"].items():
        for method, about in methods.items():
            yield f"{method.upper()} {path}"
            answer = about["responses"]["200"]["content"].get("application/json", {})
            yield from (
                f"{method.upper()} {path}: {name}" for name in answered(answer.get("schema", {}))
            )


def answered(schema: dict[str, Any], above: str = "") -> Iterator[str]:
    """List the keys of what OpenAPI describes."""
    inner = schema.get("properties", {})
    for name in {*inner, *schema.get("required", ())}:
        yield f"{above}{name}"
        yield from answered(inner.get(name, {}).get("items", {}), f"{above}{name}.")


def rows(seed: int) -> pa.Table:
    """Return a table with two kinds of anomalies, drawn so that each key has something to say."""
    rng = np.random.default_rng(seed)
    kinds = np.repeat([*KINDS, "fine", ""], [6, 6, 80, 28])
    amount = rng.normal(50, 10, 120) + 60 * (np.arange(120) < 12)
    city = np.array(CITIES)[rng.integers(0, 3, 120)]
    return pa.table([amount, rng.poisson(6, 120), city, kinds], [*COLUMNS, "odd"])


def run(*words: str) -> str:
    """Run a command in this process, and return what it prints."""
    out, err = io.StringIO(), io.StringIO()
    with Path(os.devnull).open() as nothing, redirect_stdout(out), redirect_stderr(err):
        try:
            with patch.multiple(sys, argv=["fewlier", *words], stdin=nothing):
                cli.main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"fewlier {' '.join(words)}: {err.getvalue()}") from end
    return out.getvalue()


def keys(found: object, above: str = "") -> Iterator[str]:
    """List the paths of keys in JSON; `*` stands for one that depends on the table."""
    if isinstance(found, list):
        for one in found:
            yield from keys(one, above)
    if isinstance(found, dict):
        for key, value in found.items():
            is_own = key.isidentifier() and key not in (*COLUMNS, *CITIES, *KINDS, "fine")
            path = f"{above}{key if is_own else '*'}"
            yield path
            yield from keys(value, f"{path}.")


def fixed() -> Iterable[str]:
    """List columns that scoring adds, exit codes and versions of formats."""
    yield from (f"column {name} = {dtype}" for name, dtype in batches.ADDED.items())
    ends = (ending.FINE, ending.BUG, ending.FIXABLE, ending.BROKEN_PIPE)
    yield from (f"exit code = {code}" for code in (*ends, *(128 + n for n in stopping.SIGNALS)))
    yield f"model file = version {container.VERSION}"
    yield f"file of answers = version {journal.FORMAT_VERSION}"


def untold(listed: str, lines: Iterable[str], changelog: str) -> list[str]:
    """Return the lines, with + or -, that differ from a release's list and are not told of since.

    A change is told of where its name stands above the release in the changelog.
    """
    heading, *before = listed.splitlines()
    since, found, _ = changelog.partition(f"## [{heading.removeprefix(HEADING)}]")
    if not found:
        raise ValueError(f"{CHANGELOG.name} must have a section of the version in: {heading}")
    changes = [f"+ {line}" for line in set(lines) - set(before)]
    changes += [f"- {line}" for line in set(before) - set(lines)]
    return sorted(change for change in changes if not has_word(since, name_in(change)))


def name_in(change: str) -> str:
    """Return the name that tells of a change, `path` of `- fewlier.Session(path) = None`."""
    thing = change[2:].split(" = ")[0]
    is_phrase = thing.startswith(("exit code", "model file", "file of answers"))
    return thing if is_phrase else re.findall(r"[\w-]+", thing)[-1]


def has_word(text: str, word: str) -> bool:
    """Say whether a text has a word, and not only within another."""
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


def main(arguments: list[str]) -> None:
    """Print the list, or write it unless the version in it is released."""
    warnings.simplefilter("ignore", fewlier.FewlierWarning)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    heading = HEADING + project["version"]
    text = "\n".join([heading, *surface()]) + "\n"
    if arguments != ["--write"]:
        sys.stdout.write(text)
        return
    is_dated = re.search(rf"^## \[{project['version']}\] - \d", CHANGELOG.read_text("utf-8"), re.M)
    if LIST.exists() and LIST.read_text("utf-8").startswith(f"{heading}\n") and is_dated:
        sys.exit(f"{project['version']} is released, and its list stays; raise the version first.")
    LIST.write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
