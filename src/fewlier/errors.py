"""The exception tree: one base class to catch, and one for what a user can fix.

::

    Exception
    └── FewlierError            everything fewlier raises on purpose
        └── UserError           what the user can fix; the command line exits with 2
            ├── ColumnErrors    several columns that cannot be used as they are
            └── FormatError     a model file that is damaged or unsafe

    UserWarning
    └── FewlierWarning          the result stands, with a limit the user should know of
        ├── LabelWarning        a label that may be a slip
        ├── DataWarning         columns, rows or labels to look at
        └── LeftOutWarning      columns that were left out

A message names its subject, what it must be, what was found and where, and a remedy; rows are
counted from 0. Whatever is not a `FewlierError` is a bug and keeps its traceback.

A message names what a caller writes by `parameter` and `declaration`: as in a call of Python, and
on the command line, which has a spelling of its own, as a flag.
"""

import inspect
import reprlib
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

# Columns whose problems a message lists; a table may have thousands.
_MAX_LISTED = 20
# Characters of a wrong value that a message quotes whole.
_MAX_VALUE = 100

Spelling: TypeAlias = Callable[[str, Any, str | None], str]
"""Writes a parameter; with the value that it is given, unless None; for one column, unless None."""


class FewlierError(Exception):
    """Anything that fewlier raises on purpose.

    Examples
    --------
    >>> from fewlier import AnomalyDetector, FewlierError
    >>> try:
    ...     detector = AnomalyDetector.load("forgotten.fewlier")
    ... except FewlierError as error:
    ...     print(error)
    Model file 'forgotten.fewlier' cannot be read: No such file or directory. Check the path.
    """


class UserError(FewlierError, ValueError):
    """Data, arguments or files that the user can fix, as the message says.

    What is known of the fault is in its attributes, None where it does not apply; programs read
    these, people the message.

    Parameters
    ----------
    found : str
        What must be, and what was found; by default a sentence made of the other parameters.
    parameter, column : str or None
        The parameter or the column at fault.
    row : int or None
        The first row at fault, counted from the first row given.
    file : str or None
        The file at fault.
    expected : str or None
        What the parameter must be, or the column must hold.
    got : object
        What was found instead.
    remedy : str or None
        What to do about it.
    readings : pair of str or None
        For a column that may be read in two ways, what declares each.

    Examples
    --------
    >>> from fewlier import AnomalyDetector, UserError
    >>> try:
    ...     AnomalyDetector(false_alarm_rate=2).fit([[1.0], [2.0], [3.0]])
    ... except UserError as error:  # a ValueError, too
    ...     print(error)
    ...     print(error.parameter, error.got)
    'false_alarm_rate' must be a share between 0 and 1; got 2.
    false_alarm_rate 2
    """

    def __init__(  # noqa: PLR0913 - one for each fact
        self,
        found: str = "",
        *,
        parameter: str | None = None,
        column: str | None = None,
        row: int | None = None,
        file: str | None = None,
        expected: str | None = None,
        got: object = None,
        remedy: str | None = None,
        readings: tuple[str, str] | None = None,
    ) -> None:
        if not found:
            subject = f"Column {column!r} must hold" if parameter is None else _must_be(parameter)
            end = "" if remedy or row is not None else "."
            found = f"{subject} {expected}; got {_quoted(got)}{end}"
        super().__init__(found)
        self.parameter, self.column, self.row, self.file = parameter, column, row, file
        self.expected, self.got, self.remedy, self.readings = expected, got, remedy, readings

    def __str__(self) -> str:
        """Return the whole message, with the file, the row and the remedy."""
        file = "" if self.file is None else f"{self.file}: "
        row = "" if self.row is None else f" (first at row {self.row})"
        return f"{file}{self._found()}{row}{f'. {self.remedy}' if self.remedy else ''}"

    def _found(self) -> str:
        return str(self.args[0])


def parameter(name: str, value: object = None, column: str | None = None) -> str:
    """Write a parameter as the caller does: ``'cost_miss'``, ``keep_rows=True``.

    With a column, its value for this column: ``missing={'age': '0'}``.
    """
    return _spell(name, value, column)


def declaration(column: str, said: str) -> str:
    """Write what declares a column as the caller does: ``columns={'id': 'category'}``."""
    return _spell("columns", said, column)


def spelled_in_python(name: str, value: Any, column: str | None) -> str:  # noqa: ANN401
    """Write a parameter as in a call."""
    if value is None:
        return repr(name)
    return f"{name}={value!r}" if column is None else f"{name}={{{column!r}: {value!r}}}"


_spell: Spelling = spelled_in_python


@contextmanager
def spelling(spell: Spelling) -> Iterator[None]:
    """Write parameters in another way inside the block, in all threads."""
    global _spell
    before, _spell = _spell, spell
    try:
        yield
    finally:
        _spell = before


def check_parameter(name: str, value: object, is_right: bool, expected: str) -> None:
    """Raise `UserError` for a parameter that is not as expected."""
    if not is_right:
        raise UserError(parameter=name, expected=expected, got=value)


def missing_package(needs: str, error: ImportError, extra: str) -> UserError:
    """Return the error of a package that only some uses of fewlier need, and how to install it."""
    return UserError(f"{needs}; {error.name} is not installed. Run: pip install 'fewlier[{extra}]'")


class ColumnErrors(UserError):
    """Several columns that cannot be used as they are, in one message.

    Parameters
    ----------
    problems : sequence of UserError
        What is wrong with each.
    """

    def __init__(self, problems: Sequence[UserError]) -> None:
        super().__init__("columns that cannot be used")
        self.args = (problems,)  # which also crosses processes

    @property
    def problems(self) -> Sequence[UserError]:
        """What is wrong with each column."""
        return tuple(self.args[0])

    def _found(self) -> str:
        lines = [f"\n- {problem}" for problem in self.problems[:_MAX_LISTED]]
        if len(self.problems) > _MAX_LISTED:
            lines.append(f"\n- and {len(self.problems) - _MAX_LISTED} more")
        return f"{len(self.problems)} columns cannot be used as they are:{''.join(lines)}"


def problems_of(error: UserError) -> Sequence[UserError]:
    """Return what is wrong with each column, or the error itself if it is of one thing."""
    return error.problems if isinstance(error, ColumnErrors) else (error,)


def locate(error: UserError, file: str, n_before: int = 0) -> None:
    """Say in which file an error is, unless it says so; so many rows of the file came before."""
    for problem in problems_of(error):
        if problem.row is not None and problem.file is None:
            problem.row += n_before
    error.file = file if error.file is None else error.file


def raise_all(problems: Collection[UserError]) -> None:
    """Raise what is wrong with columns, if anything is: one error as it is, several together."""
    if len(problems) > 1:
        raise ColumnErrors(list(problems))
    for problem in problems:
        raise problem


@contextmanager
def noting(problems: dict[str, UserError], column: str) -> Iterator[None]:
    """Note what is wrong with a column instead of raising it."""
    try:
        yield
    except UserError as error:
        error.column = error.column or column
        problems[column] = error


class FormatError(UserError):
    """A model file, or a part of one, that is damaged, unsafe or of an unknown format.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fewlier import AnomalyDetector, FormatError
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "fraud.fewlier"
    ...     _ = path.write_text("half a model")
    ...     try:
    ...         detector = AnomalyDetector.load(path)
    ...     except FormatError as error:
    ...         print("Another copy is needed:", path.name in str(error))
    Another copy is needed: True
    """


class FewlierWarning(UserWarning):
    """A result that stands, with a limit that the user should know about.

    Examples
    --------
    >>> import warnings
    >>> from fewlier import AnomalyDetector, FewlierWarning
    >>> rows = [[0.1 * number] for number in range(40)]
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", FewlierWarning)
    ...     detector = AnomalyDetector(random_state=0).fit(rows)
    >>> print(str(caught[0].message).partition(",")[0])
    A false-alarm rate of 0.01 needs at least 99 held-out normal rows; there are 40 distinct ones
    """


class LabelWarning(FewlierWarning):
    """A label that was taken for what it says, and may be a slip."""


class DataWarning(FewlierWarning):
    """Columns, rows or labels to look at before the result is trusted."""


class LeftOutWarning(FewlierWarning):
    """Columns that were left out, because nothing can be learned from them."""


def warn(message: str, category: type[Warning] = FewlierWarning) -> None:
    """Warn at the line that called fewlier, however deep inside it this is called."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "fewlier":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _must_be(name: str) -> str:
    return f"{parameter(name)} must be"


def _quoted(value: object) -> str:
    """Write a value; of a long text or list its ends, of a long object its type."""
    text = repr(value)
    if len(text) < _MAX_VALUE:
        return text
    is_plain = type(value).__module__ == "builtins"
    return reprlib.repr(value) if is_plain else type(value).__name__
