"""What the library calls its parameters, in the words of the command line."""

import ast
import re
import shlex

import typer

_QUOTED = re.compile(r"(?:The )?'(?P<name>\w+)'(?: parameter of AnomalyDetector)?")
_GIVEN = re.compile(r"\b(?P<name>\w+)=(?:'(?P<word>\w+)'|(?P<value>[\w+-]+(?:\.\w+)*))")
_TEXT = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_DECLARATION = re.compile(rf"columns=\{{(?P<name>{_TEXT}): (?P<said>{_TEXT})\}}")
_MISSING = re.compile(rf"\bmissing=(?:\{{(?P<name>{_TEXT}): (?P<of>{_TEXT})\}}|(?P<all>{_TEXT}))")
_LABEL = re.compile(r"\b(?P<name>anomaly|normal)=\['(?P<value>\w+)'\]")


def with_declarations(message: str) -> str:
    """Write flags for what declares a column or a label.

    ``columns={'id': 'category'}`` becomes ``--column id=category``,
    ``columns={'id': 'ignore'}`` ``--ignore id``, ``missing={'age': '0'}`` ``--missing age=0`` and
    ``anomaly=['bad']`` ``--anomaly bad``.
    """

    def declared(found: re.Match[str]) -> str:
        try:
            name, said = map(ast.literal_eval, found.group("name", "said"))
        except (SyntaxError, ValueError):  # the user's own text, which only looks like this
            return found.group()
        if said == "ignore" and "," not in name:  # --ignore splits at commas
            return shlex.join(["--ignore", name])
        return shlex.join(["--column", f"{name}={said}"])

    def missing(found: re.Match[str]) -> str:
        try:
            name, of, everywhere = (text and ast.literal_eval(text) for text in found.groups())
        except (SyntaxError, ValueError):
            return found.group()
        return shlex.join(["--missing", everywhere if name is None else f"{name}={of}"])

    message = _MISSING.sub(missing, message)
    return _LABEL.sub(r"--\g<name> \g<value>", _DECLARATION.sub(declared, message))


def in_flags(message: str, app: typer.Typer) -> str:
    """Write flags for the parameters that a `ParameterError` names.

    ``'cost_miss'`` becomes ``--cost-miss``, ``keep_rows=False`` ``--no-keep-rows`` and
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
