"""The exception tree: one base class to catch, and one that tells "your input" from "our bug".

::

    Exception
    └── FewlierError            everything fewlier raises on purpose
        └── UserError           what the user can fix; the command line exits with 2
            ├── CellError       a cell that cannot be read as its column must be
            └── FormatError     a model file that is damaged or unsafe

    UserWarning
    └── FewlierWarning          the result stands, with a limit the user should know of
        └── LabelWarning        a label that may be a slip

A message names its subject, what it must be, what was found and where, and a remedy; rows are
counted from 0. Whatever is not a `FewlierError` is a bug and keeps its traceback.
"""


class FewlierError(Exception):
    """Anything that fewlier raises on purpose."""


class UserError(FewlierError, ValueError):
    """Data, arguments or files that the user can fix, as the message says."""


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


class FormatError(UserError):
    """A model file, or a part of one, that is damaged, unsafe or of an unknown format."""


class FewlierWarning(UserWarning):
    """A result that stands, with a limit that the user should know of."""


class LabelWarning(FewlierWarning):
    """A label that was taken for what it says, and may be a slip."""
