"""The exception tree: one base class to catch, and one for what a user can fix.

::

    Exception
    └── FewlierError            everything fewlier raises on purpose
        └── UserError           what the user can fix; the command line exits with 2
            ├── CellError       a cell that cannot be read as its column must be
            ├── FormError       a column that may be read in two ways
            ├── ColumnErrors    several columns that cannot be used as they are
            ├── FileError       something wrong with a file, which the message names
            ├── ParameterError  a parameter of a call; named by its flag on the command line
            └── FormatError     a model file that is damaged or unsafe

    UserWarning
    └── FewlierWarning          the result stands, with a limit the user should know of
        ├── LabelWarning        a label that may be a slip
        ├── DataWarning         columns, rows or labels to look at
        └── LeftOutWarning      columns that were left out

A message names its subject, what it must be, what was found and where, and a remedy; rows are
counted from 0. Whatever is not a `FewlierError` is a bug and keeps its traceback.
"""

import inspect
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

# Columns whose problems a message lists; a table may have thousands.
_MAX_LISTED = 20
# Characters of a wrong value that a message quotes; of a longer one it names the type.
_MAX_VALUE = 100


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

    Examples
    --------
    >>> from fewlier import AnomalyDetector, UserError
    >>> try:
    ...     AnomalyDetector(false_alarm_rate=2).fit([[1.0], [2.0], [3.0]])
    ... except UserError as error:  # a ValueError, too
    ...     print(error)
    'false_alarm_rate' must be a share between 0 and 1; got 2.
    """


class ParameterError(UserError):
    """A parameter of a call with a value that it cannot have.

    The message quotes parameters, as ``'cost_miss'``, or gives their values, as ``keep_rows=True``,
    and nothing else in it looks like that: the command line writes their flags instead.
    """


def check_parameter(owner: str, name: str, value: object, is_right: bool, expected: str) -> None:
    """Raise `ParameterError` for a parameter of a class that is not as expected."""
    if not is_right:
        found = value if len(repr(value)) < _MAX_VALUE else type(value).__name__
        raise ParameterError(
            f"The {name!r} parameter of {owner} must be {expected}; got {found!r}."
        )


def missing_package(needs: str, error: ImportError, extra: str) -> UserError:
    """Return the error of a package that only some uses of fewlier need, and how to install it."""
    return UserError(f"{needs}; {error.name} is not installed. Run: pip install 'fewlier[{extra}]'")


class CellError(UserError):
    """A cell that cannot be read as its column must be.

    Parameters
    ----------
    found : str
        What the column must hold, and what it holds.
    row : int
        The first row where it does, counted from the first row given.
    remedy : str
        What to do about it.
    """

    def __init__(self, found: str, row: int, remedy: str) -> None:
        super().__init__(f"{found} (first at row {row}). {remedy}")
        self.found, self.row, self.remedy = found, row, remedy

    def __reduce__(self) -> tuple[type["CellError"], tuple[str, int, str]]:
        """Let the error cross processes with all of its parts."""
        return CellError, (self.found, self.row, self.remedy)

    def after(self, n_rows: int) -> "CellError":
        """Return the same error with `n_rows` more rows before its own."""
        return CellError(self.found, self.row + n_rows, self.remedy)


class FormError(UserError):
    """A column that may be read in two ways.

    Parameters
    ----------
    message : str
        What it is that may be read in two ways.
    column : str
        The column.
    forms : tuple of str
        What declares either way.
    """

    def __init__(self, message: str, column: str, forms: tuple[str, str]) -> None:
        first, second = (declaration(column, form) for form in forms)
        super().__init__(f"{message} {first} or {second}.")
        self.message, self.column, self.forms = message, column, forms

    def __reduce__(self) -> tuple[type["FormError"], tuple[str, str, tuple[str, str]]]:
        """Let the error cross processes with all of its parts."""
        return FormError, (self.message, self.column, self.forms)


class ColumnErrors(UserError):
    """Several columns that cannot be used as they are, in one message.

    Parameters
    ----------
    problems : sequence of UserError
        What is wrong with each.
    """

    def __init__(self, problems: Sequence[UserError]) -> None:
        lines = "".join(f"\n- {problem}" for problem in problems[:_MAX_LISTED])
        if len(problems) > _MAX_LISTED:
            lines += f"\n- and {len(problems) - _MAX_LISTED} more"
        super().__init__(f"{len(problems)} columns cannot be used as they are:{lines}")
        self.problems = tuple(problems)

    def __reduce__(self) -> tuple[type["ColumnErrors"], tuple[tuple[UserError, ...]]]:
        """Let the error cross processes with all of its parts."""
        return ColumnErrors, (self.problems,)

    def after(self, n_rows: int) -> "ColumnErrors":
        """Return the same errors with `n_rows` more rows before their own."""
        return ColumnErrors(
            [p.after(n_rows) if isinstance(p, CellError) else p for p in self.problems]
        )


def declaration(column: str, said: str) -> str:
    """Write what declares a column, as in a call; the command line writes a flag instead."""
    return f"columns={{{column!r}: {said!r}}}"


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
        problems[column] = error


class FileError(UserError):
    """What is wrong with a file, which the message begins with."""


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
