"""`Ledger`: the answers of a session, on disk before they count, if there is a file."""

from collections.abc import Sequence
from typing import final

from fewlier.files.atomic import PathLike
from fewlier.labelling.answers.answer import Answer, RowKey, Stack, standing
from fewlier.labelling.answers.identity import Identities, check_columns, locate
from fewlier.labelling.answers.journal import Journal
from fewlier.table import Table


@final
class Ledger:
    """The answers that were given and not taken back.

    Parameters
    ----------
    table : Table
        The table that they are about.
    path : path or None
        The file that holds them, and those to come; it is locked until `close`.
    """

    def __init__(self, table: Table, path: PathLike | None) -> None:
        columns: Sequence[str] = table.names
        self._stack: Stack = ()
        self._journal = None if path is None else Journal(path)
        try:
            if self._journal is not None and self._journal.recorded.n_bytes:
                recorded = self._journal.recorded
                check_columns(recorded.columns, columns, str(path))
                columns = recorded.columns
                self._stack = recorded.stack
            self._identities = Identities.of(table, columns)
            self._stack = locate(self._stack, self._identities, str(path))
            if self._journal is not None and not self._journal.recorded.n_bytes:
                self._journal.begin(columns)
        except BaseException:
            self.close()
            raise

    @property
    def standing(self) -> Stack:
        """The answers that stand, in order."""
        return standing(self._stack)

    @property
    def n_given(self) -> int:
        """How many answers were given and not taken back, also those that others replaced."""
        return len(self._stack)

    def key(self, row: int) -> RowKey:
        """Return what finds a row again."""
        return self._identities.key(row)

    def add(self, answer: Answer) -> None:
        """Take an answer, once it is on disk."""
        if self._journal is not None:
            self._journal.add(answer)
        self._stack = (*self._stack, answer)

    def take_back(self) -> Answer | None:
        """Take the last answer back, once that is on disk; None where there is none."""
        if not self._stack:
            return None
        last = self._stack[-1]
        if self._journal is not None:
            self._journal.take_back(last)
        self._stack = self._stack[:-1]
        return last

    def close(self) -> None:
        """Let others write to the file."""
        if self._journal is not None:
            self._journal.close()
