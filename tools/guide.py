"""Run what documents show: `python tools/guide.py docs/GUIDE.md docs/PYTHON.md [--check]`.

A block of the kind `console` shows commands, each after "$ ", and below it what it prints. All
commands of a document run one after the other in one temporary folder. In a document with a block
of the kind `text` below one of the kind `python`, the blocks of Python are one program, and each
block of text is what the one above it prints. What is shown is replaced; with --check it is
compared instead, and a block that shows anything else fails (exit code 1).
"""

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

Step = tuple[str, str]
"""A command, or a block of Python, and what it prints."""

BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", flags=re.MULTILINE | re.DOTALL)
PROMPT = "$ "
PYTHON = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?",
    flags=re.MULTILINE | re.DOTALL,
)
# Reads the blocks of a program, and writes what each of them prints.
RUN = """\
import contextlib, io, json, sys
names, printed = {"__name__": "__main__"}, []
for code in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(code, names)
    printed.append(output.getvalue())
json.dump(printed, sys.stdout)
"""
# One thread adds numbers up in the same order everywhere, and does not quarrel for cores.
ENVIRONMENT = {"COLUMNS": "100", "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1"}
# Lines about the progress come only where a command takes long.
PROGRESS = re.compile(r"^fewlier: \w+ing: .* (s|min|h)( left)?( \(.*\))?\n", flags=re.MULTILINE)
# What another machine may print otherwise: hashes of files, times, versions, and which lambdas are
# kept, which hangs on last digits. The width of a table hangs on its numbers.
MASKS = (
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"(?<=takes at most about )[^.]*(\.\d[^.]*)?"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? s\b"), "TIME"),
    (re.compile(r"(?<=torch )\S+"), "VERSION"),
    (re.compile(r"^lambda .*", flags=re.MULTILINE), "LAMBDAS"),
    (re.compile(r"─+"), "─"),
    (re.compile(r" +"), " "),
)
# Versions such as 0.2.0 are words: they are compared letter by letter.
NUMBER = re.compile(r"(?<![\w.])[+-]?(?!\d+\.\d+\.\d)\d+(?:\.\d+)?(?:e[+-]?\d+)?")
TOLERANCE = Decimal("0.05")


def main(arguments: Sequence[str]) -> int:
    """Replace the blocks of some documents, or compare them; return the exit code."""
    parser = argparse.ArgumentParser(description="Run the commands that documents show.")
    parser.add_argument("documents", type=Path, nargs="+")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args(arguments)
    return max([treat(document, check=options.check) for document in options.documents])


def treat(document: Path, *, check: bool) -> int:
    """Replace the blocks of a document, or compare them; return the exit code."""
    text = document.read_text("utf-8")
    shown = [step for block in BLOCK.findall(text) for step in steps(block)]
    program = blocks_of_python(text)
    with tempfile.TemporaryDirectory() as folder:
        printed = [(command, output_of(command, Path(folder))) for command, _ in shown]
        told = run_python([code for code, _ in program], Path(folder)) if program else []
    if not check:
        document.write_text(rewritten(text, printed, told), "utf-8")
        what = f" and {len(told)} blocks of Python" if told else ""
        print(f"guide: wrote the output of {len(printed)} commands{what} to {document}")
        return 0
    pairs = zip(shown + program, printed + told, strict=True)
    stale = [difference(*pair) for pair in pairs if not alike(*pair)]
    n = len(shown + program)
    print(*stale, f"guide: {len(stale)} of {n} commands print something else", sep="\n")
    return 1 if stale else 0


def blocks_of_python(text: str) -> list[Step]:
    """Return the blocks of Python with what is shown below them; none if that is never shown."""
    found = [(block["code"], block["output"] or "") for block in PYTHON.finditer(text)]
    return found if any(output for _, output in found) else []


def run_python(blocks: Sequence[str], folder: Path) -> list[Step]:
    """Run blocks as one program in a folder, and return them with what each prints."""
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=folder,
        env=os.environ | ENVIRONMENT,
        input=json.dumps(blocks),
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode:
        sys.exit(f"guide: the program ended with exit code {done.returncode}:\n{done.stderr}")
    outputs = (re.sub(r" +$", "", text, flags=re.MULTILINE) for text in json.loads(done.stdout))
    return list(zip(blocks, outputs, strict=True))


def steps(block: str) -> list[Step]:
    """Return the commands of a block with what it shows below them."""
    before, *parts = re.split(f"^{re.escape(PROMPT)}", block, flags=re.MULTILINE)
    if before or not parts:
        sys.exit(f"guide: a console block must begin with {PROMPT!r}; got {block!r}")
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


def output_of(command: str, folder: Path) -> str:
    """Run a command in a folder and return what it prints, without blanks at the ends of lines."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | ENVIRONMENT | {"PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    if done.returncode:
        sys.exit(f"guide: {command!r} ended with exit code {done.returncode}:\n{done.stdout}")
    output = re.sub(r" +$", "", PROGRESS.sub("", done.stdout), flags=re.MULTILINE).strip("\n")
    return f"{output}\n" if output else ""


def rewritten(text: str, printed: Sequence[Step], told: Sequence[Step]) -> str:
    """Return the document with this below its commands, and below its blocks of Python."""
    outputs, answers = iter(printed), iter(told)

    def fresh(block: re.Match[str]) -> str:
        parts = (next(outputs) for _ in steps(block.group()))
        return "".join(f"{PROMPT}{command}\n{output}" for command, output in parts)

    def answered(_: re.Match[str]) -> str:
        code, output = next(answers)
        shown = f"\n```text\n{output}```\n" if output else ""
        return f"```python\n{code}```\n{shown}"

    text = BLOCK.sub(fresh, text)
    return PYTHON.sub(answered, text) if told else text


def alike(shown: Step, printed: Step) -> bool:
    """Whether words and shape are the same, and the numbers nearly."""
    ours, theirs = (_masked(output) for _, output in (shown, printed))
    if NUMBER.sub("#", ours) != NUMBER.sub("#", theirs):
        return False
    pairs = zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True)
    return all(near(Decimal(one), Decimal(other)) for one, other in pairs)


def near(one: Decimal, other: Decimal) -> bool:
    """Whether two numbers differ by at most five per cent, or by one in their last digit."""
    last_digit = max(Decimal(1).scaleb(int(number.as_tuple().exponent)) for number in (one, other))
    return abs(one - other) <= max(TOLERANCE * max(abs(one), abs(other)), last_digit)


def _masked(output: str) -> str:
    for pattern, mask in MASKS:
        output = pattern.sub(mask, output)
    return output


def difference(shown: Step, printed: Step) -> str:
    """Return what a command should print and prints, line by line."""
    before, after = (output.splitlines() for _, output in (shown, printed))
    lines = difflib.unified_diff(before, after, "the document", "the command", lineterm="")
    return "\n".join([f"{PROMPT}{shown[0].rstrip()}", *lines])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
