"""Run what documents show: `python tools/guide.py docs/TUTORIAL.md docs/PYTHON.md [--check]`.

A block of the kind `console` shows commands, each after "$ ", and below it what it prints. In a
document with a block of the kind `text` below one of the kind `python`, the blocks of Python are
one program, and each block of text is what the one above it prints. All blocks of a document run
one after the other in one temporary folder; what they leave running, such as a service, is ended
after the last. What is shown is replaced; with --check it is compared instead, and a block that
shows anything else fails (exit code 1).
"""

import argparse
import difflib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import IO, NamedTuple


class Step(NamedTuple):
    """A command, or a block of Python, and what it prints."""

    source: str
    output: str
    is_python: bool


BLOCK = re.compile(
    r"^```console\n(?P<console>.*?)^```$"
    r"|^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?",
    flags=re.MULTILINE | re.DOTALL,
)
PROMPT = "$ "
# Reads the blocks of a program, each a line of JSON, and writes what each of them prints.
RUN = """\
import contextlib, io, json, sys
names = {"__name__": "__main__"}
for line in sys.stdin:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(json.loads(line), names)
    print(json.dumps(output.getvalue()), flush=True)
"""
# One thread adds numbers up in the same order everywhere, and does not quarrel for cores.
ENVIRONMENT = {"COLUMNS": "100", "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1"}
# Lines about the progress come only where a command takes long.
PROGRESS = re.compile(r"^fewlier: \w+ing: .* (s|min|h)( left)?( \(.*\))?\n", flags=re.MULTILINE)
# What another machine may print otherwise: hashes of files, times, versions, errors of rounding,
# and which lambdas are kept, which hangs on last digits. The width of a table hangs on its numbers.
MASKS = (
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"(?<=takes at most about )[^.]*(\.\d[^.]*)?"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? s\b"), "TIME"),
    (re.compile(r"(?<=torch )\S+|(?<=\"torch\": )\S+"), "VERSION"),
    (re.compile(r"(?<=as in the model, within )\S+"), "ERROR"),
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
    shown = list(steps_of(text))
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with folder as name, running(Path(name)) as machine:
        printed = [step._replace(output=machine.run(step)) for step in shown]
    if not check:
        document.write_text(rewritten(text, printed), "utf-8")
        n_python = sum(step.is_python for step in shown)
        what = f" and {n_python} blocks of Python" if n_python else ""
        n_commands = len(shown) - n_python
        print(f"guide: wrote the output of {n_commands} commands{what} to {document}")
        return 0
    pairs = zip(shown, printed, strict=True)
    stale = [difference(*pair) for pair in pairs if not alike(*pair)]
    print(*stale, f"guide: {len(stale)} of {len(shown)} commands print something else", sep="\n")
    return 1 if stale else 0


def steps_of(text: str) -> Iterator[Step]:
    """Yield what a document runs and shows; Python only if what it prints is shown anywhere."""
    blocks = list(BLOCK.finditer(text))
    is_program = any(block["output"] for block in blocks)
    for block in blocks:
        if block["code"] is None:
            yield from steps(block["console"])
        elif is_program:
            yield Step(block["code"], block["output"] or "", is_python=True)


def steps(block: str) -> list[Step]:
    """Return the commands of a block with what it shows below them."""
    before, *parts = re.split(f"^{re.escape(PROMPT)}", block, flags=re.MULTILINE)
    if before or not parts:
        sys.exit(f"guide: a console block must begin with {PROMPT!r}; got {block!r}")
    split = (part.partition("\n") for part in parts)
    return [Step(command, output, is_python=False) for command, _, output in split]


class Machine(NamedTuple):
    """Runs the steps of a document in a folder."""

    folder: Path
    program: subprocess.Popen[str]
    errors: IO[str]
    started: list[int]

    def run(self, step: Step) -> str:
        """Return what a step prints, without blanks at the ends of lines."""
        output = (self._tell if step.is_python else self._call)(step.source)
        return re.sub(r" +$", "", output, flags=re.MULTILINE)

    def _tell(self, code: str) -> str:
        """Run a block of Python after those before it."""
        send, receive = self.program.stdin, self.program.stdout
        assert send is not None
        assert receive is not None
        send.write(f"{json.dumps(code)}\n")
        send.flush()
        if answer := receive.readline():
            return str(json.loads(answer))
        code_of_exit = self.program.wait()
        self.errors.seek(0)
        told = self.errors.read()
        sys.exit(f"guide: the program ended with exit code {code_of_exit}:\n{told}")

    def _call(self, command: str) -> str:
        """Run a command, as a process group of its own."""
        words = ["bash", "-c", command]
        process = start(words, self.folder, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        self.started.append(process.pid)
        told, _ = process.communicate()
        if process.returncode:
            sys.exit(f"guide: {command!r} ended with exit code {process.returncode}:\n{told}")
        output = re.sub(r" +$", "", PROGRESS.sub("", told), flags=re.MULTILINE).strip("\n")
        return f"{output}\n" if output else ""


@contextmanager
def running(folder: Path) -> Iterator[Machine]:
    """Run steps in a folder, and end what they leave running."""
    words = [sys.executable, "-c", RUN]
    started: list[int] = []
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        start(words, folder, stdin=subprocess.PIPE, stderr=errors) as program,
    ):
        try:
            yield Machine(folder, program, errors, started)
        finally:
            for group in started:
                with suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGTERM)


def start(
    words: Sequence[str], folder: Path, stdin: int, stderr: int | IO[str]
) -> subprocess.Popen[str]:
    """Start a process in a folder, with the commands of this environment first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.Popen(
        words,
        cwd=folder,
        env=os.environ | ENVIRONMENT | {"PATH": path},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        encoding="utf-8",
        start_new_session=True,
    )


def rewritten(text: str, printed: Sequence[Step]) -> str:
    """Return the document with this below its commands, and below its blocks of Python."""
    found = iter(printed)
    is_program = any(step.is_python for step in printed)

    def fresh(block: re.Match[str]) -> str:
        if block["code"] is None:
            parts = [next(found) for _ in steps(block["console"])]
            lines = "".join(f"{PROMPT}{step.source}\n{step.output}" for step in parts)
            return f"```console\n{lines}```"
        if not is_program:
            return block[0]
        code, output, _ = next(found)
        shown = f"\n```text\n{output}```\n" if output else ""
        return f"```python\n{code}```\n{shown}"

    return BLOCK.sub(fresh, text)


def alike(shown: Step, printed: Step) -> bool:
    """Whether words and shape are the same, and the numbers nearly."""
    ours, theirs = (_masked(step.output) for step in (shown, printed))
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
    before, after = (step.output.splitlines() for step in (shown, printed))
    lines = difflib.unified_diff(before, after, "the document", "the command", lineterm="")
    return "\n".join([f"{PROMPT}{shown.source.rstrip()}", *lines])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
