"""Rows of a file that the user names: by number, or by what a column holds."""

from collections.abc import Iterable
from typing import final

import numpy as np

from fewlier.errors import UserError
from fewlier.files.reading import Batch, TableFile, naming
from fewlier.process.escape import list_names, suggest
from fewlier.table.arrays import Ints
from fewlier.table.cells import cell_text


@final
class RowChoice:
    """Finds the named rows while a file is read batch by batch.

    Parameters
    ----------
    file : TableFile
        The file; errors call it by its name.
    numbers : iterable of int
        Row numbers, counted from 0.
    cells : iterable of (str, str)
        Columns and the text to look for; every row that has it is chosen. Spaces around a cell
        are ignored.

    Raises
    ------
    UserError
        For a column that the file does not have.
    """

    def __init__(
        self, file: TableFile, numbers: Iterable[int] = (), cells: Iterable[tuple[str, str]] = ()
    ) -> None:
        self._file = file
        self._numbers = sorted(set(numbers))
        self._n_of_cell = dict.fromkeys(((name, cell_text(text)) for name, text in cells), 0)
        self._n_rows = 0
        unknown = [name for name, _ in self._n_of_cell if name not in file.columns]
        if unknown:
            raise UserError(
                f"{file.name}: rows must be chosen by one of its columns; got "
                f"{list_names(unknown)}. {suggest(unknown[0], file.columns)}"
            )

    def find(self, batch: Batch) -> Ints:
        """Return the positions of the chosen rows in the next batch, ascending."""
        n, self._n_rows = batch.rows.num_rows, self._n_rows + batch.rows.num_rows
        is_chosen = np.isin(batch.start + np.arange(n), self._numbers)
        for name, text in self._n_of_cell:
            with naming(batch.file, batch.start):
                texts = map(cell_text, batch.rows[name].to_pylist())
            has_it = np.fromiter((found == text for found in texts), np.bool_, n)
            self._n_of_cell[name, text] += int(has_it.sum())
            is_chosen |= has_it
        return np.flatnonzero(is_chosen)

    def check(self) -> None:
        """Refuse, once all batches are read, numbers and texts that were not found."""
        numbers = [str(number) for number in self._numbers if number >= self._n_rows]
        cells = [f"{name}={text}" for (name, text), n in self._n_of_cell.items() if not n]
        with naming(self._file.name):
            if numbers:
                last, found = self._n_rows - 1, ", ".join(numbers)
                raise UserError(f"rows must be counted from 0 to {last}; got {found}.")
            if cells:
                raise UserError(f"no row has {list_names(cells)}. Write it as in the file.")
