"""The exception tree: one base class to catch, and one that tells "your input" from "our bug".

::

    Exception
    └── FewlierError            everything fewlier raises on purpose
        └── UserError           what the user can fix; the command line exits with 2
            └── FormatError     a model file that is damaged or unsafe

    UserWarning
    └── FewlierWarning          the result stands, with a limit the user should know of

A message names its subject, what it must be, what was found and where, and a remedy; rows are
counted from 0. Whatever is not a `FewlierError` is a bug and keeps its traceback.
"""


class FewlierError(Exception):
    """Anything that fewlier raises on purpose."""


class UserError(FewlierError, ValueError):
    """Data, arguments or files that the user can fix, as the message says."""


class FormatError(UserError):
    """A model file, or a part of one, that is damaged, unsafe or of an unknown format."""


class FewlierWarning(UserWarning):
    """A result that stands, with a limit that the user should know of."""
