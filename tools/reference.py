"""Write docs/REFERENCE.md from the code: `python tools/reference.py [--check]`.

The page has what `--help` of each command prints, and the docstrings of the public names. With
--check it is compared instead of written, and a page that is out of date fails (exit code 1).
"""

import argparse
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path

from surface import CALLED, INTERNAL
from typer.main import get_command

from fewlier.cli.app import app

PAGE = Path(__file__).parents[1] / "docs" / "REFERENCE.md"
# What calls return, and people look at.
SHOWN = {
    "fewlier.fitting.summary": ("Summary",),
    "fewlier.reasons.explanation": ("Explanation",),
    "fewlier.reasons.reason": ("Reason",),
    "fewlier.decision.drift": ("Drift",),
}
HEAD = """\
# Reference

Written by `tools/reference.py` from `--help` and the docstrings; change those. The
[tutorial](TUTORIAL.md) and [Python](PYTHON.md) show how things are used together.

- [Commands](#commands)
- [Names in Python](#names-in-python)
"""
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", flags=re.MULTILINE)
ENTRY = re.compile(
    r"^(?P<name>\S.*?)(?: : (?P<type>.*))?\n(?P<text>(?:(?: {4}.*)?\n)*)", re.MULTILINE
)
LISTS = {"Parameters", "Returns", "Yields", "Attributes", "Raises"}


def main(arguments: Sequence[str]) -> int:
    """Write the page, or compare it; return the exit code."""
    parser = argparse.ArgumentParser(description="Write the reference from the code.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    text = "\n".join([HEAD, *commands(), *names()])
    if not parser.parse_args(arguments).check:
        PAGE.write_text(text, "utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text("utf-8") == text:
        return 0
    print(f"{PAGE.name} is out of date; run: python tools/reference.py")
    return 1


def commands() -> Iterator[str]:
    """Yield a section for each command, with its help."""
    yield "## Commands\n"
    yield (
        "`python -m fewlier` is `fewlier`. `fewlier --install-completion` lets bash, zsh or fish\n"
        "complete commands and options; `fewlier --show-completion` prints the script for it.\n"
    )
    for name in get_command(app).commands:
        told = subprocess.run(
            [sys.executable, "-m", "fewlier", name, "--help"],
            env=os.environ | {"COLUMNS": "88", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"},
            capture_output=True,
            encoding="utf-8",
            check=True,
        ).stdout
        text = re.sub(r" +$", "", told, flags=re.MULTILINE).strip("\n")
        yield f"### `fewlier {name}`\n\n```text\n{text}\n```\n"


def names() -> Iterator[str]:
    """Yield a section for each public name, with its docstring."""
    yield "## Names in Python\n"
    for module, listed in (*CALLED.items(), *SHOWN.items()):
        for name in listed:
            found = getattr(import_module(module), name)
            yield f"### `{module}.{name}`\n"
            yield from described(found, name, is_called=module in CALLED)
            if inspect.isclass(found):
                for member, called in members(found):
                    yield f"#### `{name}.{member}`\n"
                    yield from described(called, member)


def members(owner: type) -> Iterator[tuple[str, object]]:
    """Yield the public methods and properties of a class."""
    for name, found in vars(owner).items():
        called = found.fget if isinstance(found, property) else found
        called = called.func if isinstance(called, cached_property) else called
        called = getattr(called, "__func__", called)
        is_public = name[0] != "_" or name == "__call__"
        if (
            is_public
            and inspect.isfunction(called)
            and not INTERNAL.fullmatch(f"{owner.__name__}.{name}")
        ):
            is_method = inspect.isfunction(found) or isinstance(found, classmethod | staticmethod)
            yield name, (called if is_method else inspect.getdoc(called))


def described(found: object, name: str, *, is_called: bool = True) -> Iterator[str]:
    """Yield the signature of a class or function, if it is called, and its docstring."""
    if isinstance(found, str):  # of a property
        yield markdown(found)
        return
    is_error = inspect.isclass(found) and issubclass(found, Exception)
    if is_called and not is_error:
        yield f"```python\n{signature(found, name)}\n```\n"
    yield markdown(inspect.getdoc(found) or "")


def signature(called: object, name: str) -> str:
    """Return how something is called, without types, one parameter a line where it is long."""
    taken = inspect.signature(called)
    plain = [shown(p) for p in taken.parameters.values() if p.name not in ("self", "cls")]
    # As ruff writes it, which formats blocks of Python in documents, too.
    short = f"{name}{inspect.Signature(plain)}".replace("Ellipsis", "...").replace("'", '"')
    if len(short) <= 90:
        return short
    marks = short.removeprefix(f"{name}(")[:-1].split(", ")
    return f"{name}(\n" + "".join(f"    {mark},\n" for mark in joined(marks)) + ")"


def shown(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter without its type; a function as default is shown as dots."""
    default = parameter.default
    is_function = inspect.isfunction(default)
    return parameter.replace(annotation=parameter.empty, default=... if is_function else default)


def joined(parts: Sequence[str]) -> Iterator[str]:
    """Put parts together again that a comma inside of brackets has parted."""
    held = ""
    for part in parts:
        held = f"{held}, {part}" if held else part
        if held.count("(") == held.count(")"):
            yield held
            held = ""


def markdown(docstring: str) -> str:
    """Return a docstring in the form of numpydoc as Markdown."""
    summary, *sections = SECTION.split(f"{docstring}\n")
    parts = [paragraphs(summary)]
    for title, text in zip(sections[::2], sections[1::2], strict=True):
        body = entries(text) if title in LISTS else paragraphs(text)
        parts.append(f"*{title}*\n\n{body}")
    return "\n".join(parts)


def entries(text: str) -> str:
    """Return entries such as those of parameters as a list."""
    lines = []
    for entry in ENTRY.finditer(f"{text.strip()}\n"):
        kind = f" ({entry['type']})" if entry["type"] else ""
        lines.append(f"- `{entry['name']}`{kind}: {' '.join(entry['text'].split())}".rstrip(": "))
    return tidy("\n".join(lines)) + "\n"


def paragraphs(text: str) -> str:
    """Return text with its examples as code."""
    blocks = re.split(r"\n\s*\n", text.strip("\n"))
    return (
        "\n\n".join(
            f"```python\n{block}\n```" if block.lstrip().startswith(">>>") else tidy(block)
            for block in blocks
            if block.strip()
        )
        + "\n"
    )


def tidy(text: str) -> str:
    """Return prose with the marks of Markdown for code."""
    return text.replace("``", "`")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
