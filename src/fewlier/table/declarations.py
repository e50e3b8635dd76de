"""What the user declares of columns: a kind, how numbers or dates are written, or `ignore`."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fewlier.errors import UserError, declaration, noting
from fewlier.shown import suggest
from fewlier.table.columns import Kind
from fewlier.table.dates import DateForm, is_pattern
from fewlier.table.numbers import NumberForm

IGNORE = "ignore"
"""What declares that a column is to be left out."""


class Declared(NamedTuple):
    """What the user said of a column; all of it may be absent."""

    kind: Kind | None = None
    form: NumberForm | DateForm | None = None
    is_ignored: bool = False

    @property
    def says_what_it_holds(self) -> bool:
        """Whether nothing is left to recognise in the text of the column."""
        return self.is_ignored or self.kind is Kind.CATEGORY or self.form is not None


def read_declarations(
    names: Iterable[str], overrides: Mapping[str, str], problems: dict[str, UserError]
) -> dict[str, Declared]:
    """Read what is declared of the named columns; `problems` takes what cannot be meant."""
    names, declared = list(names), {}
    for name, said in overrides.items():
        with noting(problems, name):
            if name not in names:
                raise UserError(
                    f"{declaration(name, said)} must name a column of the table; got {name!r}. "
                    f"{suggest(name, names)}"
                )
            declared[name] = _read(name, said)
    return declared


def _read(name: str, said: object) -> Declared:
    """Read a kind, an example of a number, ``kind:example``, or the pattern of a date."""
    if said == IGNORE:
        return Declared(is_ignored=True)
    text, subject = str(said), f"Column {name!r}"
    kind, _, example = text.partition(":")
    if ":" not in text and any(map(str.isdigit, text)):
        kind, example = "", text
    try:
        if is_pattern(text):
            return Declared(form=DateForm.of_pattern(text))
        form = NumberForm.of_example(example) if example else None
    except UserError as error:
        raise UserError(f"{subject} is declared {said!r}. {error}") from error
    return Declared(read_kind(kind, subject) if kind else None, form)


def read_kind(kind: str, subject: str) -> Kind:
    """Return the kind of this name."""
    if kind not in list(Kind):
        names = ", ".join(repr(choice.value) for choice in Kind)
        raise UserError(
            f"{subject} must be declared one of {names}, {IGNORE!r}, or by an example of its "
            f"numbers, such as '1.234,5'; got {kind!r}."
        )
    return Kind(kind)
