"""The shape of the source: imports point down, functions are short, classes abstract or final."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "fewlier"

FLOORS = [  # bottom to top; a room imports only from floors below its own
    {"errors"},
    {"process"},
    {"modelfile.state"},  # what every stored object reads and writes
    {"table"},
    {"files"},
    {"density", "decision"},
    {"training"},
    {"score"},
    {"scoring.scored"},
    {"reasons"},
    {"fitting"},
    {"modelfile"},
    {"detector"},
    {"scoring"},
    {"report", "export", "engines"},
    {"labelling", "service"},
    {"cli"},
    {"__main__"},
]
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
# What these need of torch they import when it is needed.
WITHOUT_TORCH = [f"process.{name}" for name in ("escape", "markup", "memory", "signals")]
WITHOUT_TORCH += ["errors", "table", "files", "decision", "training.history", "cli"]
WITHOUT_TORCH += ["fitting.check", "fitting.summary", "modelfile.state", "modelfile.container"]

MAX_FUNCTION_LINES = 60  # without its docstring
MAX_FILE_LINES, MAX_LINES_OF = 350, {"detector.py": 475}  # without the examples in docstrings
EXAMPLES = re.compile(r'^ +Examples\n +-{8}\n.*?(?=^ +""")', flags=re.MULTILINE | re.DOTALL)

MODULES = {
    str(path.relative_to(ROOT)): ast.parse(path.read_text("utf-8"))
    for path in sorted(ROOT.rglob("*.py"))
}
FOLDERS = sorted(path.parent for path in ROOT.rglob("__init__.py") if path.parent != ROOT)


def dotted(file):
    """Return the name that a file is imported by."""
    return ".".join(["fewlier", *Path(file).with_suffix("").parts]).removesuffix(".__init__")


def nodes(tree, *kinds):
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def imported(tree):
    """Yield the dotted names a module imports, also in functions; ruff bans relative imports."""
    for node in nodes(tree, ast.Import, ast.ImportFrom):
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


def reading_order(folder):
    """Return the files of a folder in the order that its docstring lists them in."""
    text = ast.get_docstring(MODULES[str(folder.relative_to(ROOT) / "__init__.py")]) or ""
    listed = re.search(r"Read in this order: ([\w,\s]+)\.", text)
    assert listed, f"{folder.name}/__init__.py must list its files: 'Read in this order: ...'"
    return re.split(r",\s+", listed[1].strip())


def room_of(name):
    """Return the room that holds a dotted name, or the file of it that has a floor of its own."""
    room, _, rest = name.partition(".")
    file = f"{room}.{rest.partition('.')[0]}"
    return file if file in FLOOR else room


def test_rooms_import_from_floors_below():
    for file, tree in MODULES.items():
        here = room_of(".".join(Path(file).with_suffix("").parts))
        if here == "__init__":
            continue  # the package resolves its public names lazily, from every floor
        assert here in FLOOR, f"give {here} a place in FLOORS"
        for name in imported(tree):
            package, _, rest = name.partition(".")
            there = room_of(rest)
            if package != "fewlier" or there in {here, "__version__"}:
                continue
            assert there in FLOOR, f"{file}: import {name} from the module that defines it"
            assert FLOOR[there] < FLOOR[here], f"{file} must not import {name}"


def test_files_import_earlier_ones_of_their_folder():
    for folder in FOLDERS:
        order, package = reading_order(folder), dotted(folder.relative_to(ROOT))
        files = {p.stem for p in folder.iterdir() if p.suffix == ".py" or p in FOLDERS}
        assert sorted(order) == sorted(files - {"__init__"}), folder.name
        for number, here in enumerate(order):
            inside = folder / here
            of_file = [inside.with_suffix(".py")] if inside not in FOLDERS else inside.rglob("*.py")
            for path in of_file:
                for name in imported(MODULES[str(path.relative_to(ROOT))]):
                    there = name.removeprefix(f"{package}.").partition(".")[0]
                    is_later = name.startswith(f"{package}.") and there in order[number + 1 :]
                    assert not is_later, f"{path.name} must not import {name}: it comes later"


def test_tables_and_commands_start_without_torch():
    names = [name for file in MODULES if (name := dotted(file).removeprefix("fewlier."))]
    chosen = [n for n in names if any(f"{n}.".startswith(f"{room}.") for room in WITHOUT_TORCH)]
    code = "\n".join(["import sys", *(f"import fewlier.{name}" for name in chosen)])
    code += "\nsys.exit('torch was imported' if 'torch' in sys.modules else 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_shape_is_checked_when_tests_run():
    options = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text("utf-8"))["tool"]
    addopts = options["pytest"]["ini_options"]["addopts"]
    (packages,) = [option for option in addopts if option.startswith("--jaxtyping")]
    checked = packages.partition("=")[2].split(",")
    makefile = (ROOT.parents[1] / "Makefile").read_text("utf-8")
    folders = re.search(r"^SHAPED := (.*)$", makefile, flags=re.MULTILINE)[1].split()
    for file, tree in MODULES.items():
        if any(name.startswith("jaxtyping") for name in imported(tree)):
            assert dotted(file).startswith(tuple(checked)), f"add {dotted(file)}"
            room = Path(file).parts[0]
            assert room.endswith(".py") or f"tests/{room}" in folders, f"add tests/{room} to SHAPED"


def test_nothing_prints():
    for file, tree in MODULES.items():
        assert "print" not in {getattr(call.func, "id", "") for call in nodes(tree, ast.Call)}, file


def test_functions_and_files_are_short():
    for file, tree in MODULES.items():
        for function in nodes(tree, ast.FunctionDef, ast.AsyncFunctionDef):
            assert body_lines(function) <= MAX_FUNCTION_LINES, f"{file}: {function.name}"
        n_lines = len(EXAMPLES.sub("", (ROOT / file).read_text("utf-8")).splitlines())
        is_short = n_lines <= MAX_LINES_OF.get(file, MAX_FILE_LINES)
        assert is_short, f"{file} has {n_lines} lines"


def test_classes_are_abstract_final_or_data():
    for file, tree in MODULES.items():
        for cls in nodes(tree, ast.ClassDef):
            assert is_abstract_final_or_data(cls), f"{file}: {cls.name}"
