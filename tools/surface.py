"""List what users rely on, as docs/PROMISES.md promises it: `python tools/surface.py [--write]`.

tests/golden/surface.txt is the list of a release, which `--write` writes. tests/test_surface.py
asks that CHANGELOG.md tells of every difference since, each by its name and that of its owner.
"""

import calendar
import inspect
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import fields, is_dataclass
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
from fewlier import AnomalyDetector, cli, plot
from fewlier.cli import ending
from fewlier.cli.app import app
from fewlier.export.onnx.check import made_up
from fewlier.export.onnx.columns import NO_CODE, NO_DATE, UNSEEN, inputs_of
from fewlier.export.onnx.export import METADATA, facts_of
from fewlier.export.onnx.whole import Outputs
from fewlier.labelling.answers import journal
from fewlier.labelling.answers.answer import Answer, RowKey
from fewlier.modelfile import container
from fewlier.process import signals
from fewlier.scoring import scored
from fewlier.service.app import make_app
from fewlier.service.limits import Limits
from fewlier.service.metrics import Counts

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "golden" / "surface.txt"
CHANGELOG = ROOT / "CHANGELOG.md"
HEADING = "Public surface of fewlier "
# What is called, and what calls return.
CALLED = {
    "fewlier": tuple(fewlier.__all__),
    "fewlier.report.plots": tuple(plot.__all__),
    "fewlier.scoring.batches": ("BatchScorer",),
    "fewlier.engines.ray": ("score",),
    "fewlier.engines.spark": ("score",),
    "fewlier.errors": ("DataWarning", "LabelWarning", "LeftOutWarning"),
    "fewlier.export.mlflow": ("log_model", "save_model"),
    "fewlier.labelling.widget": ("label",),
    "fewlier.fitting.check": ("check_table",),
}
RETURNED = {
    "fewlier.decision.drift": ("Change", "Drift"),
    "fewlier.decision.evaluation": ("Evaluation", "KindEvaluation"),
    "fewlier.decision.threshold": ("Threshold",),
    "fewlier.labelling.answers.answer": ("Answer",),
    "fewlier.labelling.question": ("Progress", "Question", "Ranked"),
    "fewlier.labelling.asking.remaining": ("Remaining",),
    "fewlier.reasons.expectation": ("Expectation",),
    "fewlier.reasons.explanation": ("Explanation",),
    "fewlier.reasons.reason": ("Reason",),
    "fewlier.fitting.summary": ("Summary",),
    "fewlier.fitting.check": ("ColumnCheck", "LabelCheck", "TableCheck"),
    "fewlier.table.labels": ("Labels",),
    "fewlier.training.history": ("MemberHistory",),
}
# Methods that other modules of fewlier call, and those that scikit-learn adds.
INTERNAL = re.compile(
    r"\w+\.(after|at|build|check|checked|compared|followed_by|from_json|from_state|is_hopeless"
    r"|lay_out|of|record|require|state|to_markup|warn|set_.*_request)|(?!LabelColumn)\w+\.read"
)
APP = get_command(app)
# Words that tell nothing of where a name belongs.
GENERAL = {"fewlier", "GET", "POST", "column", "input", "output", "first", "line"}
COLUMNS, CITIES = ("amount", "visits", "city", "when"), ("Bern", "Oslo", "Rome")
KINDS = ("fraud", "error")
# Keys of JSON that depend on this table.
OF_THE_TABLE = {*COLUMNS, *CITIES, *KINDS, "fine", *calendar.day_name}
LABEL = ("--label", "odd", "--anomaly", KINDS[0], "--anomaly", KINDS[1])


def surface() -> list[str]:
    """Return a line for everything, such as `fewlier.Session(path) = None`."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        lines = [*python_names(), *options(), *json_keys("a.fewlier"), *answers(), *fixed()]
        detector = AnomalyDetector.load("a.fewlier")
    fitted = (name for name in vars(detector) if name[-1] == "_" != name[0])
    lines += [f"fewlier.AnomalyDetector.{name}" for name in fitted]
    return sorted({*lines, *service(), *graph(detector)})


def python_names() -> Iterator[str]:
    """List classes, functions, parameters, methods and attributes."""
    for module, names in (*CALLED.items(), *RETURNED.items()):
        for name in names:
            found, path = getattr(import_module(module), name), f"{module}.{name}"
            is_returned = name in RETURNED.get(module, ())
            yield path
            is_class = inspect.isclass(found)
            if not is_returned and not (is_class and issubclass(found, Exception)):
                yield from parameters(path, found)
            if is_class:
                yield from members(path, found, is_returned=is_returned)


def parameters(path: str, call: Callable[..., object]) -> Iterator[str]:
    """List what a class or a function takes."""
    for name, parameter in inspect.signature(call).parameters.items():
        if name in ("self", "cls"):
            continue
        default = parameter.default
        is_plain = isinstance(default, bool | int | float | str | tuple | None)
        shown = f" = {default!r}" if is_plain else ""
        yield f"{path}({name}){'' if default is parameter.empty else shown}"


def members(path: str, owner: type, *, is_returned: bool) -> Iterator[str]:
    """List methods and attributes that fewlier defines, and fields that the docstring has.

    Without a list of them in the docstring these are all fields of what calls return.
    """
    documented = (inspect.getdoc(owner) or "").partition("Attributes\n----------\n")[2]
    for names in re.findall(r"^(\w+(?:, \w+)*) : ", documented, flags=re.MULTILINE):
        yield from (f"{path}.{name}" for name in names.split(", "))
    if is_returned and is_dataclass(owner) and not documented:
        yield from (f"{path}.{field.name}" for field in fields(owner))
    yield from (f"{path}.{name}" for name in getattr(owner, "_fields", ()))
    own = [base for base in owner.__mro__ if base.__module__.startswith("fewlier")]
    for name, member in {name: vars(base)[name] for base in own for name in vars(base)}.items():
        if name.startswith("_") or INTERNAL.fullmatch(f"{owner.__name__}.{name}"):
            continue
        if isinstance(member, property | cached_property):
            yield f"{path}.{name}"
        elif callable(getattr(owner, name)) and hasattr(member, "__get__"):
            yield f"{path}.{name}()"
            yield from parameters(f"{path}.{name}", getattr(owner, name))


def options() -> Iterator[str]:
    """List commands with their arguments and options."""
    commands = {f"$ fewlier {name}": about for name, about in APP.commands.items()}
    for command, about in {"$ fewlier": APP, **commands}.items():
        yield command
        for option in (one for one in about.params if not getattr(one, "hidden", False)):
            default = "" if option.default is None else f" = {option.default}"
            for flag in (*option.opts, *option.secondary_opts):
                yield f"{command} {flag}{default}"


def json_keys(model: str) -> Iterator[str]:
    """List the keys of what `--json` prints, and leave a model in the folder."""
    for seed, name in enumerate(("rows.csv", "more.csv")):
        csv.write_csv(rows(seed), name)
    calls = {
        "check": ("rows.csv", *LABEL),
        "fit": ("rows.csv", *LABEL, "--max-epochs", "1", "-o", model),
        "update": (model, "more.csv", *LABEL),
        "score": ("rows.csv", "-m", model, "-o", "scored.csv"),
        "explain": ("rows.csv", "-m", model),
        "evaluate": ("rows.csv", "-m", model, *LABEL),
        "report": ("rows.csv", "-m", model, *LABEL, "-o", "report.html"),
        "threshold": (model, "--false-alarm-rate", "0.1"),
        "inspect": (model,),
        "label": ("rows.csv", "-m", model, "--terminal", "-o", "labels.jsonl"),
    }
    for command, words in calls.items():
        printed = json.loads(run(command, *words, "--json"))
        yield from (f"$ fewlier {command} --json: {key}" for key in keys(printed))


def answers() -> Iterator[str]:
    """List the keys of a file of answers: of its first line, of an answer, and of an undo."""
    answer = Answer(0, RowKey("", 0), 1, "", cells={COLUMNS[0]: 1.0})
    file = journal.Journal("answers.jsonl")
    file.begin(COLUMNS)
    file.add(answer)
    file.take_back(answer)
    file.close()
    lines = Path("answers.jsonl").read_text("utf-8").splitlines()
    for what, line in zip(("first line", "answer", "undo"), lines, strict=True):
        yield from (f"labels.jsonl, {what}: {key}" for key in keys(json.loads(line)))


def service() -> Iterator[str]:
    """List what the service is asked, and the keys of what it answers."""
    with tempfile.TemporaryDirectory() as folder:
        app = make_app(Path(folder), Counts(Path(folder)), Limits(), ["*"], None)
        described = app.openapi()
    parts = described["components"]["schemas"]
    for path, methods in described["paths"].items():
        for method, about in methods.items():
            call = f"{method.upper()} {path}"
            yield call
            yield from (f"{call}?{one['name']}" for one in about.get("parameters", ()))
            for schema in in_json(about.get("requestBody", {})).get("oneOf", ()):
                yield from (f"{call}, request: {name}" for name in schema["properties"])
            yield from (f"{call}: {name}" for name in answered(about["responses"]["200"], parts))


def in_json(content: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a request or of an answer in JSON, empty if it is none."""
    return content.get("content", {}).get("application/json", {}).get("schema", {})


def graph(detector: AnomalyDetector) -> Iterator[str]:
    """List what an ONNX graph takes and gives, and the keys of its metadata."""
    encoder = detector.model_.encoder
    _, columns = made_up(encoder)
    for one in inputs_of(encoder):
        yield f"$ fewlier export, input {one.form} = {columns[one.name].dtype}"
    stand_ins = {"date: missing": NO_DATE, "category: missing": NO_CODE, "category: unseen": UNSEEN}
    yield from (f"$ fewlier export, input {what} = {code}" for what, code in stand_ins.items())
    yield from (f"$ fewlier export, output {name}" for name in Outputs._fields)
    facts = keys(facts_of(detector.model_))
    yield from (f"$ fewlier export, metadata {METADATA}: {key}" for key in facts)


def answered(answer: dict[str, Any], parts: dict[str, Any], above: str = "") -> Iterator[str]:
    """List the keys of what OpenAPI describes."""
    for reference in re.findall(r"'\$ref': '#/components/schemas/(\w+)'", str(answer)):
        for name, inner in parts[reference]["properties"].items():
            yield f"{above}{name}"
            yield from answered(inner, parts, f"{above}{name}.")


def rows(seed: int) -> pa.Table:
    """Return a table with two kinds of anomalies, drawn so that each key has something to say."""
    rng = np.random.default_rng(seed)
    kinds = np.repeat([*KINDS, "fine", ""], [6, 6, 80, 28])
    amount = rng.normal(50, 10, 120) + 60 * (np.arange(120) < 12)
    city = np.array(CITIES)[rng.integers(0, 3, 120)]
    hours = np.datetime64("2026-03-01T00") + np.sort(rng.integers(0, 720, 120))
    when = [f"{hour}:30:00+01:00" for hour in hours]
    return pa.table([amount, rng.poisson(6, 120), city, when, kinds], [*COLUMNS, "odd"])


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
            is_own = key.isidentifier() and key not in OF_THE_TABLE
            path = f"{above}{key if is_own else '*'}"
            yield path
            yield from keys(value, f"{path}.")


def fixed() -> Iterable[str]:
    """List columns that scoring adds, exit codes and versions of formats."""
    yield from (f"column {name} = {dtype}" for name, dtype in scored.ADDED.items())
    ends = (ending.FINE, ending.BUG, ending.FIXABLE, ending.BROKEN_PIPE)
    yield from (f"exit code = {code}" for code in (*ends, *(128 + n for n in signals.SIGNALS)))
    yield f"model file = version {container.VERSION}"
    yield f"file of answers = version {journal.FORMAT_VERSION}"


def untold(listed: str, lines: Iterable[str], changelog: str) -> list[str]:
    """Return the lines, with + or -, that differ from a release's list and are not told of since.

    Whoever tells that something is new or gone need not list its parts.
    """
    heading, *before = listed.splitlines()
    version = heading.removeprefix(HEADING)
    found = re.search(rf"^## \[?{re.escape(version)}\]?( |$)", changelog, flags=re.MULTILINE)
    if not found:
        raise ValueError(f"{CHANGELOG.name} must have a section of the version in: {heading}")
    entries = re.split(r"\n(?=- )|\n\s*\n", changelog[: found.start()])
    everything = {thing(line) for line in {*lines, *before}}
    n_alike = Counter(words(one)[-1] for one in everything)
    left = []
    for sign, more, fewer in (("+", lines, before), ("-", before, lines)):
        changed = {line: thing(line) for line in set(more) - set(fewer)}
        for line, name in changed.items():
            if not any(is_part(name, other) for other in changed.values()) and not any(
                tells(entry, line, is_unique=n_alike[words(name)[-1]] == 1) for entry in entries
            ):
                left.append(f"{sign} {line}")
    return sorted(left)


def tells(entry: str, line: str, *, is_unique: bool) -> bool:
    """Say whether a paragraph or an item of a list tells of a change.

    It has the name in backticks, `path` of `fewlier.Session(path) = None`, and what it belongs to
    as well, `Session`, unless nothing else has this name. Versions and exit codes are in words.
    """
    if phrase := re.match(r"(exit code|model file|file of answers) = (.*)", line):
        return has_word(entry, phrase[1]) and has_word(entry, phrase[2].split()[-1])
    code = " ".join(re.findall(r"`([^`]+)`", entry))
    *owners, name = words(thing(line))
    return has_word(code, name) and (
        is_unique or any(has_word(code, owner) for owner in owners if owner not in GENERAL)
    )


def thing(line: str) -> str:
    """Return what a line is about, without its value."""
    return line.split(" = ")[0].removesuffix("()")


def words(name: str) -> Sequence[str]:
    """Return the names in a name, the last one innermost."""
    return re.findall(r"[\w-]+", name)


def is_part(name: str, other: str) -> bool:
    """Say whether a thing is a part of another."""
    return re.match(rf"{re.escape(other)}[^\w-]", name) is not None


def has_word(text: str, word: str) -> bool:
    """Say whether a text has a word, and not only within another."""
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


def main(arguments: list[str]) -> None:
    """Print the list, or write it unless the version in it is released."""
    warnings.simplefilter("ignore", fewlier.FewlierWarning)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    text = "\n".join([HEADING + project["version"], *surface()]) + "\n"
    if arguments != ["--write"]:
        sys.stdout.write(text)
        return
    asked = ("git", "tag", "--list", f"v{project['version']}")
    if subprocess.run(asked, cwd=ROOT, capture_output=True, text=True).stdout:
        sys.exit(f"{project['version']} is released, and its list stays; raise the version first.")
    LIST.write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
