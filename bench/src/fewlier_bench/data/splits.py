"""Which rows train, validate and test in the paper's experiments, and how columns are scaled."""

from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from fewlier.errors import UserError

Rows: TypeAlias = npt.NDArray[np.int64]


@final
@dataclass(frozen=True)
class Protocol:
    """How tables are split, as section "Experiments" of the paper says, or leaves open.

    From the paper: 80 % of the normal rows and k anomalies train, 10 % and k validate, the rest
    tests; ten splits. Left open by it and decided here:

    - Splits are nested in k: the anomalies of k = 1 are among those of k = 3, and these among those
      of k = 5. Normal rows are the same for all k, and so are test rows: what the largest k of a
      table needs is never tested on, so differences between k are not differences of test sets.
    - A table takes part in k if a third of its anomalies are enough, that is, if at least k are
      left to test. This leaves out Parkinson and Shuttle at k = 5, as the paper does.
    - Split i of a table is drawn from the seed (`seed`, i).
    - `validation_anomalies`, if given, takes the place of k in validation; the variant with three
      shows what the choice of hyper-parameters gains from k. Test rows remain the same.

    Where scaling is fitted is also left open: see `scale_columns`.
    """

    training_share: float = 0.8
    validation_share: float = 0.1
    n_splits: int = 10
    n_labelled: tuple[int, ...] = (1, 3, 5)
    validation_anomalies: int | None = None
    seed: int = 0

    def n_labelled_of(self, n_anomalies: int) -> tuple[int, ...]:
        """Return the values of k that a table with this many anomalies takes part in.

        >>> Protocol().n_labelled_of(12)
        (1, 3)
        """
        return tuple(k for k in self.n_labelled if 3 * k <= n_anomalies)


PAPER = Protocol()
THREE_VALIDATION_ANOMALIES = Protocol(validation_anomalies=3)


@final
@dataclass(frozen=True, eq=False)
class PaperSplit:
    """Row numbers: normal rows first, then anomalies, each in the order they were drawn."""

    training: Rows
    validation: Rows
    test: Rows


def make_paper_split(
    y: npt.NDArray[np.int8], number: int, n_labelled: int, protocol: Protocol = PAPER
) -> PaperSplit:
    """Return split `number`, counted from 0, of a table with `n_labelled` training anomalies.

    Parameters
    ----------
    y : array of shape (n_rows,)
        1 for an anomaly, 0 for a normal row.
    number : int
        Which of the splits of the protocol.
    n_labelled : int
        k, the number of anomalies that train.
    protocol : Protocol
        Shares, seed and the k that splits are nested in.
    """
    _check(y, number, n_labelled, protocol)
    rng = np.random.default_rng([protocol.seed, number])
    normals, anomalies = (rng.permutation(np.flatnonzero(y == label)) for label in (0, 1))
    training, validation, test = np.split(normals, _bounds(len(normals), protocol))
    reserve = max(protocol.n_labelled_of(len(anomalies)))
    to_train, to_validate, to_test = np.split(anomalies, [reserve, 2 * reserve])
    n_validating = protocol.validation_anomalies or n_labelled
    return PaperSplit(
        np.concatenate([training, to_train[:n_labelled]]),
        np.concatenate([validation, to_validate[:n_validating]]),
        np.concatenate([test, to_test]),
    )


def scale_columns(X: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Map each column linearly to [0, 1] over all rows; a constant column becomes 0.

    The paper scales before it splits, and the collection's files are scaled over all of their rows
    already, so that no other choice is left; only PenDigits, whose columns all run from 0 to 100,
    is changed.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    return np.asarray((X - low) / span, dtype=np.float64)


def _check(y: npt.NDArray[np.int8], number: int, n_labelled: int, protocol: Protocol) -> None:
    if not np.isin(y, (0, 1)).all():
        raise UserError("y must be 0 or 1 in every row; got other values. Label all rows.")
    if not 0 <= number < protocol.n_splits:
        raise UserError(
            f"The number of a split must be from 0 to {protocol.n_splits - 1}; got {number}."
        )
    n_anomalies = int((y == 1).sum())
    possible = protocol.n_labelled_of(n_anomalies)
    if n_labelled not in possible:
        raise UserError(
            f"The number of labelled anomalies must be one of {protocol.n_labelled} and at most a "
            f"third of the table's {n_anomalies}; got {n_labelled}. Possible here: "
            f"{possible or 'none'}."
        )
    if (protocol.validation_anomalies or 0) > max(possible):
        raise UserError(
            f"The table has too few anomalies to validate on {protocol.validation_anomalies}: "
            f"{n_anomalies} in all."
        )
    n_normals = len(y) - n_anomalies
    first, second = _bounds(n_normals, protocol)
    if not 0 < first < second < n_normals:
        raise UserError(
            f"A table must have normal rows to train, validate and test; got {n_normals}."
        )


def _bounds(n_normals: int, protocol: Protocol) -> tuple[int, int]:
    """Return where validation and test rows begin."""
    n_training = round(protocol.training_share * n_normals)
    return n_training, n_training + round(protocol.validation_share * n_normals)
