"""The meaning of y, in one place."""

import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fewlier.errors import CellError, UserError
from fewlier.table.frame import MISSING, Table, is_text, number_text

ANOMALY, NORMAL, UNLABELLED = 1, 0, -1

_REMEDY = (
    "Write 1 (or True) for an anomaly, 0 (or False) for a normal row, and leave unlabelled rows "
    "missing (NaN or None)."
)


def read_labels(y: object, n_rows: int) -> npt.NDArray[np.int8]:
    """Return one of `ANOMALY`, `NORMAL`, `UNLABELLED` per row, shape (n_rows,).

    1 and True mean anomaly, 0 and False normal; a missing value is unlabelled, and so is -1 where
    a 0 or a missing value is present too. {-1, 1} alone is refused: in scikit-learn's outlier
    detectors it means the opposite. None in place of y leaves all rows unlabelled.
    """
    if y is None:
        return np.full(n_rows, UNLABELLED, dtype=np.int8)
    values = _as_numbers(y)
    if len(values) != n_rows:
        raise UserError(
            f"y must have one label per row; got {len(values)} labels for {n_rows} rows. "
            "Give X and y of the same length."
        )
    unlabelled = np.isnan(values)
    found = set(np.unique(values[~unlabelled]).tolist())
    if not found <= {-1.0, 0.0, 1.0}:
        strange = sorted(found - {-1.0, 0.0, 1.0})
        raise UserError(
            "Only binary classification is supported. Unknown label type: y must hold 1 and 0; "
            f"got {strange[:5]} (first at row {_first(values, strange)}). {_REMEDY}"
        )
    if -1.0 in found and 0.0 not in found and not unlabelled.any():
        raise UserError(
            "y must mark normal rows by 0; got only -1 and 1, which scikit-learn's outlier "
            f"detectors use with the opposite meaning. {_REMEDY}"
        )
    return np.where(unlabelled, UNLABELLED, values).astype(np.int8)


def label_values(
    name: str, cells: Sequence[object], anomaly: str | None = None
) -> npt.NDArray[np.float64]:
    """Read the label column of a file: 1, 0, or NaN where it says nothing, shape (n,).

    With `anomaly`, cells that read so are 1 and others 0; without, cells are 0 or 1, or true or
    false in any case. The result is for `read_labels`, once all rows of the file are there.
    """
    texts = [_label_text(cell) for cell in cells]
    if anomaly is not None:
        known = {None: np.nan, _label_text(anomaly) or anomaly: 1.0}
        return np.array([known.get(text, 0.0) for text in texts], dtype=np.float64)
    truth = {None: np.nan, "1": 1.0, "0": 0.0, "-1": -1.0, "true": 1.0, "false": 0.0}
    folded = [None if text is None else text.lower() for text in texts]
    for row, text in enumerate(folded):
        if text not in truth:
            raise CellError(
                f"Label column {name!r} must hold 1 and 0, or true and false, or nothing where "
                f"the label is unknown; got {texts[row]!r}",
                row,
                "Say which value means anomaly: --anomaly VALUE.",
            )
    return np.array([truth[text] for text in folded], dtype=np.float64)


def _label_text(cell: object) -> str | None:
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, int | float):
        return None if cell != cell else number_text(float(cell))
    text = "" if cell is None else str(cell).strip()
    # Pandas writes 1.0, or 1,0 with a decimal comma, for 1 in a column with gaps.
    return None if text in MISSING else re.sub(r"^(-?\d+)[.,]0+$", r"\1", text)


def _as_numbers(y: object) -> npt.NDArray[np.float64]:
    """Return y as numbers, shape (n,), with NaN where it is missing."""
    array = _as_vector(y)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    cells = Table.of(array.astype(object)[:, None]).cells["x0"]
    if not is_text(cells):
        return cells
    truth = {None: np.nan, "True": 1.0, "False": 0.0}
    for row, cell in enumerate(cells):
        if cell not in truth:
            raise UserError(
                f"Unknown label type: y must hold 1 and 0; got the text {cell!r} (first at row "
                f"{row}). {_REMEDY}"
            )
    return np.array([truth[cell] for cell in cells])


def _as_vector(y: object) -> npt.NDArray[Any]:
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning  # here, because it loads slowly

        message = "A column-vector y was passed when a 1d array was expected; it is read as one."
        warnings.warn(message, DataConversionWarning, stacklevel=4)
        array = array[:, 0]
    if array.ndim != 1:
        raise UserError(
            f"y must be a list of labels; got an array of shape {array.shape}. Reshape your data "
            "to one label per row."
        )
    return array


def _first(values: npt.NDArray[np.float64], strange: list[float]) -> int:
    return int(np.flatnonzero(np.isin(values, strange))[0])
