"""A study as a command: what it calls, and the options of that."""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, final

Call: TypeAlias = Callable[[Namespace], None]
"""What computes or prints, and whose docstring is its help."""
Option: TypeAlias = tuple[str, dict[str, Any]]
"""What `ArgumentParser.add_argument` is told."""


def option(name: str, **settings: Any) -> Option:  # noqa: ANN401 - as add_argument has them
    """Return an option, as `add_argument` does: what begins with dashes is a flag."""
    return name, settings


SOME = option("--tables", nargs="*", default=[])
TABLES = option("--data", type=Path, required=True), SOME
OUT = option("--out", type=Path, required=True)
FILE = option("out", type=Path)  # what `--out` of another call has written


@final
@dataclass(frozen=True)
class Study:
    """What a study calls; of several, the command line names one.

    >>> def run(arguments): print(arguments.rows)
    >>> Study.of(run, option("--rows", type=int)).main("growth", None, ["--rows", "7"])
    7
    """

    calls: tuple[tuple[Call, tuple[Option, ...]], ...]

    @classmethod
    def of(cls, call: Call, *options: Option) -> "Study":
        """Return a study of one call."""
        return cls(((call, options),))

    def __or__(self, other: "Study") -> "Study":
        """Return a study of the calls of both, each under the name of its function."""
        return Study(self.calls + other.calls)

    def main(self, name: str, text: str | None, words: Sequence[str]) -> None:
        """Do what the words of the command line ask for; `text` describes the study."""
        parser = ArgumentParser(
            prog=f"fewlier-bench {name}",
            description=text,
            formatter_class=RawDescriptionHelpFormatter,
        )
        commands = parser.add_subparsers(required=True) if len(self.calls) > 1 else None
        for call, options in self.calls:
            command = commands.add_parser(call.__name__, help=call.__doc__) if commands else parser
            command.set_defaults(call=call)
            for flag, settings in options:
                command.add_argument(flag, **settings)
        chosen = parser.parse_args(words)
        chosen.call(chosen)
