"""What the library calls its parameters, in the words of the command line."""

import ast
import re
import shlex

import typer

_QUOTED = re.compile(r"(?:The )?'(?P<name>\w+)'(?: parameter of AnomalyDetector)?")
_GIVEN = re.compile(r"\b(?P<name>\w+)=(?:'(?P<word>\w+)'|(?P<value>[\w+-]+(?:\.\w+)*))")
_NAME = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_DECLARATION = re.compile(rf"columns=\{{(?P<name>{_NAME}): '(?P<said>[^']*)'\}}")


def with_declarations(message: str) -> str:
    """Write flags for what declares a column.

    ``columns={'id': 'category'}`` becomes ``--column id=category``, and
    ``columns={'id': 'ignore'}`` ``--ignore id``.
    """

    def declared(found: re.Match[str]) -> str:
        try:
            name = ast.literal_eval(found["name"])
        except (SyntaxError, ValueError):  # text of the user's that only looks like a declaration
            return found.group()
        if found["said"] == "ignore" and "," not in name:  # --ignore splits at commas
            return shlex.join(["--ignore", name])
        return shlex.join(["--column", f"{name}={found['said']}"])

    return _DECLARATION.sub(declared, message)


def in_flags(message: str, app: typer.Typer) -> str:
    """Write flags for the parameters that a `ParameterError` names.

    ``'cost_miss'`` becomes ``--cost-miss``, ``memory=False`` ``--no-memory`` and
    ``device='auto'`` ``--device auto``. A parameter that no command has keeps its name.
    """
    flags = _flags(app)

    def named(found: re.Match[str]) -> str:
        on, _ = flags.get(found["name"], (found.group(), ""))
        return on

    def given(found: re.Match[str]) -> str:
        if found["name"] not in flags:
            return found.group()
        on, off = flags[found["name"]]
        value = found["word"] or found["value"]
        if off:
            return off if value == "False" else on
        return f"{on} {value}"

    return _GIVEN.sub(given, _QUOTED.sub(named, message))


def _flags(app: typer.Typer) -> dict[str, tuple[str, str]]:
    """Return the flag of each parameter of each command, and the one that switches it off."""
    commands = getattr(typer.main.get_command(app), "commands", {}).values()
    options = [option for command in commands for option in command.params]
    return {
        option.name: (option.opts[0], "".join(option.secondary_opts[:1]))
        for option in options
        if option.opts[0].startswith("--")
    }
