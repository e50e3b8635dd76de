"""The meaning of y, in one place; `label_column.py` reads the label columns of files."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from fewlier.errors import FewlierWarning, LabelWarning, UserError, warn
from fewlier.table.arrays import Bools, Codes, Floats, Ints
from fewlier.table.cells import is_text, unmasked
from fewlier.table.frame import Table

ANOMALY, NORMAL, UNLABELLED = 1, 0, -1
WORDS = {ANOMALY: "anomaly", NORMAL: "normal", UNLABELLED: "unlabelled"}
"""The codes in words."""

_REMEDY = (
    "Write 1 (or True) for an anomaly, 0 (or False) for a normal row, and leave unlabelled rows "
    "missing (NaN or None)."
)


@final
@dataclass(frozen=True)
class RowCounts:
    """How many rows have each label, and how many labelled anomalies are of each kind."""

    n_normal: int
    n_anomaly: int
    n_unlabelled: int
    kinds: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, codes: Codes, kinds: Mapping[str, int] | None = None) -> "RowCounts":
        """Count rows by the codes of their labels."""
        normal, anomaly, unlabelled = (
            int((codes == code).sum()) for code in (NORMAL, ANOMALY, UNLABELLED)
        )
        return cls(normal, anomaly, unlabelled, kinds or {})

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.n_normal + self.n_anomaly + self.n_unlabelled

    @property
    def labelled_share(self) -> float:
        """Share of labelled anomalies among the rows."""
        return self.n_anomaly / self.n_rows

    def updated(self, more: "RowCounts", replaced: Codes) -> "RowCounts":
        """Count more rows in; `replaced` are labels, counted before, that these take the place of.

        Counts of kinds only grow: the kind of a row that is no longer an anomaly is not known. A
        kind may be spelled otherwise the second time.
        """
        gone = RowCounts.of(replaced)
        spelled = {kind.casefold(): kind for kind in (*more.kinds, *self.kinds)}
        kinds: Counter[str] = Counter()
        for kind, n in (*self.kinds.items(), *more.kinds.items()):
            kinds[spelled[kind.casefold()]] += n
        return RowCounts(
            self.n_normal + more.n_normal - gone.n_normal,
            self.n_anomaly + more.n_anomaly - gone.n_anomaly,
            self.n_unlabelled + more.n_unlabelled - gone.n_unlabelled,
            dict(kinds.most_common()),
        )


@final
@dataclass(frozen=True, eq=False)
class Labels:
    """What is known about each row, read once; `fit` and `update` take it in place of y.

    Parameters
    ----------
    codes : array of int8 (n,)
        `ANOMALY`, `NORMAL` or `UNLABELLED`.
    kinds : tuple of str
        Kinds of anomalies, the most frequent first; empty if the labels name none.
    kind_of : array of int64 (n,), or None
        Position in `kinds` of each anomaly's kind, -1 for all other rows; None without kinds.
    notes, doubts : tuple of str
        How the labels were understood, and which of them may be slips.
    """

    codes: Codes
    kinds: tuple[str, ...] = ()
    kind_of: Ints | None = None
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @classmethod
    def of(cls, y: object, n_rows: int, X: object = None) -> "Labels":
        """Read y as `read_labels` does; what has been read already is taken as it is.

        Labels belong to rows by position. If `X` and y of pandas have one index in two orders,
        they are refused: then labels would go to other rows than theirs.
        """
        if isinstance(y, Labels):
            _check_length(len(y), n_rows)
            return y
        codes = read_labels(y, n_rows)
        _check_order(X, y)
        return cls(codes)

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.codes)

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """Return y as numbers: 1, 0, or NaN where nothing is known."""
        numbers = np.where(self.codes == UNLABELLED, np.nan, self.codes)
        return np.array(numbers, dtype=dtype, copy=copy)

    def take(self, rows: Bools) -> "Labels":
        """Return the labels of some rows, given by a mask."""
        kind_of = None if self.kind_of is None else self.kind_of[rows]
        return replace(self, codes=self.codes[rows], kind_of=kind_of)

    def warn(self, source: str) -> None:
        """Warn of what the values of a label column were taken for."""
        for category, messages in ((FewlierWarning, self.notes), (LabelWarning, self.doubts)):
            for message in messages:
                warn(f"{source}: {message}", category)

    @property
    def counts(self) -> RowCounts:
        """How many rows have each label, and each kind."""
        return RowCounts.of(self.codes, self.kind_counts)

    @property
    def has_normals(self) -> bool:
        """Whether any row is labelled normal."""
        return bool((self.codes == NORMAL).any())

    @property
    def compared(self) -> Codes:
        """Codes by which scores are judged: where none is normal, unlabelled rows stand in."""
        if self.has_normals:
            return self.codes
        return np.where(self.codes == UNLABELLED, NORMAL, self.codes).astype(np.int8)

    def kind(self, row: int) -> str | None:
        """Return the kind of a row; None where it has none."""
        place = -1 if self.kind_of is None else int(self.kind_of[row])
        return None if place < 0 else self.kinds[place]

    def record(self, row: int) -> dict[str, str | None]:
        """Return what is known about a row, in words."""
        code = int(self.codes[row])
        return {"label": None if code == UNLABELLED else WORDS[code], "kind": self.kind(row)}

    @property
    def kind_counts(self) -> dict[str, int]:
        """Rows of each kind."""
        if self.kind_of is None:
            return {}
        counts = np.bincount(self.kind_of[self.kind_of >= 0], minlength=len(self.kinds))
        return {kind: n for kind, n in zip(self.kinds, counts.tolist(), strict=True) if n}


def read_labels(y: object, n_rows: int) -> Codes:
    """Return one of `ANOMALY`, `NORMAL`, `UNLABELLED` per row, shape (n_rows,).

    1 and True mean anomaly, 0 and False normal; a missing value is unlabelled, and so is -1 where
    a 0 or a missing value is present too. {-1, 1} alone is refused: in scikit-learn's outlier
    detectors it means the opposite. None in place of y leaves all rows unlabelled.
    """
    if y is None:
        return np.full(n_rows, UNLABELLED, dtype=np.int8)
    values = _as_numbers(y)
    _check_length(len(values), n_rows)
    unlabelled = np.isnan(values)
    found = set(np.unique(values[~unlabelled]).tolist())
    if strange := sorted(found - {-1.0, 0.0, 1.0}):
        raise UserError(
            "Only binary classification is supported. Unknown label type: y must hold 1 and 0; "
            f"got {strange[:5]}",
            row=int(np.isin(values, strange).argmax()),
            remedy=_REMEDY,
        )
    if -1.0 in found and 0.0 not in found and not unlabelled.any():
        raise UserError(
            "y must mark normal rows by 0; got only -1 and 1, which scikit-learn's outlier "
            f"detectors use with the opposite meaning. {_REMEDY}"
        )
    return np.where(unlabelled, UNLABELLED, values).astype(np.int8)


def check_enough(codes: Codes, what: str = "A fit") -> None:
    """Refuse labels that nothing can be learned from."""
    n_anomalies = int((codes == ANOMALY).sum())
    if len(codes) < 2 or n_anomalies == len(codes):
        rows = "1 sample" if len(codes) == 1 else f"{len(codes)} rows"
        raise UserError(
            f"{what} needs 2 rows, and one that is not labelled an anomaly; got {rows}, "
            f"{n_anomalies} of the class 1. Add normal or unlabelled rows."
        )


def _check_length(n_labels: int, n_rows: int) -> None:
    if n_labels != n_rows:
        raise UserError(
            f"y must have one label per row; got {n_labels} labels for {n_rows} rows. "
            "Give X and y of the same length."
        )


def _check_order(X: object, y: object) -> None:
    rows: Any = getattr(X, "index", None)
    labels: Any = getattr(y, "index", None)
    if not (hasattr(rows, "equals") and hasattr(labels, "equals")):
        return  # only pandas has an index that is one
    is_other = len(rows) == len(labels) and not rows.equals(labels)
    if is_other and rows.isin(labels).all() and labels.isin(rows).all():
        row = int(np.argmax(np.asarray(rows) != np.asarray(labels)))
        raise UserError(
            f"y must be in the order of X; got the index of X in another order, {labels[row]} "
            f"beside {rows[row]}",
            row=row,
            remedy="Give y.loc[X.index], or y.to_numpy() if its order is that of the rows.",
        )


def _as_numbers(y: object) -> Floats:
    """Return y as numbers, shape (n,), with NaN where it is missing."""
    array = _as_vector(y)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    cells = Table.of(array.astype(object)[:, None]).cells["x0"]
    if not is_text(cells):
        return cells
    truth = {None: np.nan, "True": 1.0, "False": 0.0}
    if unknown := [cell for cell in cells if cell not in truth]:
        raise UserError(
            f"Unknown label type: y must hold 1 and 0; got the text {unknown[0]!r}",
            row=cells.tolist().index(unknown[0]),
            got=unknown[0],
            remedy=f"{_REMEDY} Or say what text means by a LabelColumn "
            "(fewlier.table.label_column).",
        )
    return np.array([truth[cell] for cell in cells])


def _as_vector(y: object) -> npt.NDArray[Any]:
    array = np.asarray(unmasked(np.asanyarray(y)))
    if array.ndim == 2 and array.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning  # here, because it loads slowly

        message = "A column-vector y was passed when a 1d array was expected; it is read as one."
        warn(message, DataConversionWarning)
        array = array[:, 0]
    if array.ndim != 1:
        raise UserError(
            f"y must be a list of labels; got an array of shape {array.shape}. Reshape your data "
            "to one label per row."
        )
    return array
