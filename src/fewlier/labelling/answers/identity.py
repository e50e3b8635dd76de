"""Which row is which: by a hash of its cells, in a table of any order and file format."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from fewlier.errors import UserError
from fewlier.labelling.answers.answer import RowKey, Stack
from fewlier.process.escape import list_names
from fewlier.table import Table
from fewlier.table.arrays import Ints, hash_rows
from fewlier.table.cells import Cells, is_text

Bits = npt.NDArray[np.uint64]

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_MISSING = np.uint64(0x7FF8_0000_0000_0000)  # the bits of NaN


@final
@dataclass(frozen=True, eq=False)
class Identities:
    """Finds rows of one table in another.

    A hash depends on the cells of the row and the names of its columns alone: not on the order of
    rows or columns, and not on the format of the file, because text that is a number counts as
    the number. Rows with equal cells are told apart by their order.

    Parameters
    ----------
    hashes : array (n,)
        The hash of each row.
    """

    hashes: Ints

    @classmethod
    def of(cls, table: Table, columns: Sequence[str]) -> "Identities":
        """Hash the named columns of a table; n rows of one hash are equal in all of them."""
        bits = (_bits(table.cells[name]) + _digest(name) for name in sorted(columns))
        return cls(hash_rows(bits))

    def key(self, row: int) -> RowKey:
        """Return what finds a row again."""
        hashed = self.hashes[row]
        before = int((self.hashes[:row] == hashed).sum())
        return RowKey(f"{int(hashed.view(np.uint64)):016x}", before)

    def find(self, key: RowKey) -> int | None:
        """Return the number of a row; None where the table does not have it."""
        rows = np.flatnonzero(self.hashes.view(np.uint64) == np.uint64(int(key.hash, 16)))
        return int(rows[key.occurrence]) if key.occurrence < len(rows) else None

    def copies(self, row: int) -> Ints:
        """Return the rows that are equal to one, itself among them."""
        return np.flatnonzero(self.hashes == self.hashes[row])


def locate(stack: Stack, identities: Identities, name: str) -> Stack:
    """Return answers with the numbers of their rows in a table; refuse a table without them."""
    places = [identities.find(answer.key) for answer in stack]
    absent = [answer.row for answer, place in zip(stack, places, strict=True) if place is None]
    if absent:
        rows = len(set(absent))
        raise UserError(
            f"{name}: the table must have every row that was answered; {rows} of "
            f"{len({answer.key for answer in stack})} are not in it (first: the one that was row "
            f"{absent[0]}). Give the table that the questions were about; rows may be added, and "
            "in any order, but not changed."
        )
    return tuple(a.at(p) for a, p in zip(stack, places, strict=True) if p is not None)


def check_columns(columns: Sequence[str], found: Sequence[str], name: str) -> None:
    """Refuse a table that lacks columns which the answered rows had."""
    absent = [column for column in columns if column not in found]
    if absent:
        raise UserError(
            f"{name}: the table must have the columns that the questions showed; it lacks "
            f"{list_names(absent)}. Give the table that the questions were about, or another file "
            "for the answers."
        )


def _bits(cells: Cells) -> Bits:
    """Return a number for each cell, shape (n,), that equal cells of any format share."""
    if not is_text(cells):
        numbers = np.where(np.isnan(cells), 0.0, cells + 0.0).view(np.uint64)  # -0 is 0
        return np.where(np.isnan(cells), _MISSING, numbers)
    known = {text: _text_bits(text) for text in set(cells)}
    return np.fromiter(map(known.__getitem__, cells), np.uint64, len(cells))


def _text_bits(text: str | None) -> int:
    if text is None:
        return int(_MISSING)
    if _NUMBER.fullmatch(text.strip()):
        return int(np.array(float(text) + 0.0).view(np.uint64))
    return int(_digest(text))


def _digest(text: str) -> np.uint64:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))
