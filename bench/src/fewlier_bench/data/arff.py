"""The collection's ARFF files, read strictly: numbers, a column `id`, a column `outlier`.

`scipy.io.arff` reads them too, but names neither file nor line when a cell is wrong, and takes
twice as long.
"""

import re
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from fewlier.errors import UserError

LABEL, IDENTIFIER = "outlier", "id"
_REMEDY = "It is damaged, or not of the collection."
_TRUTH = {"yes": 1.0, "no": 0.0}
# The name may be quoted, and then have spaces; the type is a word or a set in braces.
_ATTRIBUTE = re.compile(r"@attribute\s+(?:'([^']*)'|\"([^\"]*)\"|(\S+))\s+(\S.*)", re.IGNORECASE)


@final
@dataclass(frozen=True, eq=False)
class ArffTable:
    """Values of shape (n, d), labels of shape (n,) with 1 for an outlier, and d names."""

    X: npt.NDArray[np.float64]
    y: npt.NDArray[np.int8]
    feature_names: tuple[str, ...]


def read_arff(content: bytes, source: str) -> ArffTable:
    r"""Read a file of the collection; `source` names it in errors.

    >>> text = b"@ATTRIBUTE 'a b' real\n@ATTRIBUTE outlier {'yes','no'}\n@DATA\n.5,'no'"
    >>> read_arff(text, "a.arff").feature_names
    ('a b',)
    """
    lines = content.decode("utf-8", errors="replace").splitlines()
    names, first = _header(lines, source)
    lowered = [name.lower() for name in names]  # some files of the collection say Outlier
    if lowered.count(LABEL) != 1:
        raise UserError(
            f"{source} must have one column {LABEL!r}; got {lowered.count(LABEL)}. {_REMEDY}"
        )
    rows = [line for line in lines[first:] if _has_data(line)]
    if not rows:
        raise UserError(f"{source} must have rows after @DATA; got none. {_REMEDY}")
    cells = _cells(rows, lowered.index(LABEL))
    if cells is None or cells.shape[1] != len(names):
        raise _first_error(lines, first, names, source)
    features = [i for i, name in enumerate(lowered) if name not in {LABEL, IDENTIFIER}]
    X = np.ascontiguousarray(cells[:, features])
    if not np.isfinite(X).all():
        raise _first_error(lines, first, names, source)
    y = cells[:, lowered.index(LABEL)].astype(np.int8)
    return ArffTable(X, y, tuple(names[i] for i in features))


def _cells(rows: list[str], label: int) -> npt.NDArray[np.float64] | None:
    """Return the cells as numbers, or None if one is not a number or rows differ in length."""
    try:
        return np.loadtxt(
            rows, delimiter=",", quotechar="'", comments=None, converters={label: _truth}, ndmin=2
        )
    except ValueError:
        return None


def _header(lines: list[str], source: str) -> tuple[list[str], int]:
    """Return the names of the columns, and the index of the first line after @DATA."""
    names = []
    for i, line in enumerate(lines):
        word = line.strip().lower()
        if word.startswith("@attribute"):
            match = _ATTRIBUTE.match(line.strip())
            if match is None:
                raise UserError(
                    f"{source} line {i + 1} must be '@ATTRIBUTE name type'; got {line!r}. {_REMEDY}"
                )
            names.append(next(name for name in match.groups()[:3] if name is not None))
        elif word == "@data":
            return names, i + 1
    raise UserError(f"{source} must have a line @DATA; got none in {len(lines)} lines. {_REMEDY}")


def _has_data(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("%")


def _truth(cell: str) -> float:
    text = cell.strip().strip("'")
    if text not in _TRUTH:
        raise ValueError(cell)
    return _TRUTH[text]


def _first_error(lines: list[str], first: int, names: list[str], source: str) -> UserError:
    """Return what is wrong with the first bad row; slow, but only needed once."""
    for i in range(first, len(lines)):
        if not _has_data(lines[i]):
            continue
        cells, where = lines[i].split(","), f"{source} line {i + 1}"
        if len(cells) != len(names):
            return UserError(f"{where} must have {len(names)} cells; got {len(cells)}. {_REMEDY}")
        for name, cell in zip(names, cells, strict=True):
            expected = "'yes' or 'no'" if name.lower() == LABEL else "a finite number"
            if not _is_valid(name, cell):
                return UserError(
                    f"{where} column {name!r} must be {expected}; got {cell.strip()!r}. {_REMEDY}"
                )
    return UserError(f"{source} could not be read as rows of numbers. {_REMEDY}")


def _is_valid(name: str, cell: str) -> bool:
    try:
        value = _truth(cell) if name.lower() == LABEL else float(cell.strip().strip("'"))
    except ValueError:
        return False
    return name.lower() == IDENTIFIER or bool(np.isfinite(value))
