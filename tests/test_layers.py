"""The shape of the source: imports point down, functions are short, classes abstract or final."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "fewlier"

LAYERS = [  # bottom to top; a layer imports only from those before it
    {"errors", "stopping", "shown"},
    {"atomic", "room"},
    {"table", "archive"},
    {"manifest", "nn", "adam"},
    {"conditionals"},
    {"densities", "objective", "sampling", "trust"},
    {"training"},
    {"folds", "selection", "calibration", "drift", "evaluation", "landmarks", "points"},
    {"neighbours", "forest"},
    {"planning", "model"},
    {"memory", "expectation", "unseen"},
    {"companions"},
    {"fitting", "persistence", "explanation"},
    {"updating"},
    {"parameters", "curves"},
    {"summary"},
    {"record"},
    {"detector"},
    {"plot", "baselines", "datasets", "demo", "files", "pace"},
    {"report", "benchmark"},
    {"cli"},
    {"__main__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
WITHOUT_TORCH = {"errors", "stopping", "atomic", "room", "shown", "table", "archive", "manifest"}
WITHOUT_TORCH |= {"curves", "summary", "datasets", "pace", "cli"}

MAX_FUNCTION_LINES = 60  # both without their docstrings
MAX_CLASS_LINES = 250

MODULES = sorted(ROOT.rglob("*.py"))
each_module = pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))


def unit(path):
    """Return the file or folder right under src/fewlier that holds a module."""
    return path.relative_to(ROOT).with_suffix("").parts[0]


def module_name(path):
    parts = ("fewlier", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def nodes(path, *kinds):
    return [
        node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, kinds)
    ]


def imported(path):
    """Yield the dotted names a module imports, also in functions; ruff bans relative imports."""
    for node in nodes(path, ast.Import, ast.ImportFrom):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def last_name(node):
    """Return `final` for `final`, `typing.final` and `final(...)`, `Generic` for `Generic[T]`."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def body_lines(node):
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def is_abstract_final_or_data(cls):
    bases = [last_name(base) for base in [*cls.bases, *(k.value for k in cls.keywords)]]
    decorators = {last_name(decorator) for decorator in cls.decorator_list}
    in_body = {last_name(d) for node in cls.body for d in getattr(node, "decorator_list", [])}
    return (
        bool(decorators & {"final", "dataclass"})
        or "abstractmethod" in in_body
        or any(base in {"ABC", "ABCMeta", "Protocol", "NamedTuple"} for base in bases)
        or any(base.endswith(("Enum", "Flag", "Error", "Exception", "Warning")) for base in bases)
    )


@each_module
def test_imports_point_down(path):
    here = unit(path)
    if here == "__init__":
        return  # the package resolves its public names lazily, from every layer
    assert here in RANK, f"give {here} a place in LAYERS"
    for name in imported(path):
        package, _, rest = name.partition(".")
        there = rest.partition(".")[0]
        if package != "fewlier" or there in {here, "__version__"}:
            continue
        assert there in RANK, f"import {name} from the module that defines it"
        assert RANK[there] < RANK[here], f"{here} must not import {name}"


def test_tables_and_commands_start_without_torch():
    names = [module_name(path) for path in MODULES if unit(path) in WITHOUT_TORCH]
    code = "\n".join(f"import {name}" for name in ["sys", *names])
    code += "\nsys.exit('torch was imported' if 'torch' in sys.modules else 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_shape_is_checked_when_tests_run():
    options = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text("utf-8"))["tool"][
        "pytest"
    ]
    (packages,) = [o for o in options["ini_options"]["addopts"] if o.startswith("--jaxtyping")]
    checked = packages.partition("=")[2].split(",")
    for path in MODULES:
        if any(name.startswith("jaxtyping") for name in imported(path)):
            assert module_name(path).startswith(tuple(checked)), f"add {module_name(path)}"


@each_module
def test_nothing_prints(path):
    assert "print" not in {getattr(call.func, "id", "") for call in nodes(path, ast.Call)}


@each_module
def test_functions_and_classes_are_short(path):
    for function in nodes(path, ast.FunctionDef, ast.AsyncFunctionDef):
        assert body_lines(function) <= MAX_FUNCTION_LINES, function.name
    for cls in nodes(path, ast.ClassDef):
        assert body_lines(cls) <= MAX_CLASS_LINES, cls.name


@each_module
def test_classes_are_abstract_final_or_data(path):
    for cls in nodes(path, ast.ClassDef):
        assert is_abstract_final_or_data(cls), cls.name
