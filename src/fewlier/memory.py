"""`Memory`: rows of a fit that a model keeps, so that it can learn from more labels later."""

from dataclasses import dataclass, fields
from typing import final

import numpy as np
import numpy.typing as npt

from fewlier.errors import UserError
from fewlier.folds import Fold
from fewlier.planning import Labels, Plan
from fewlier.sampling import IntArray
from fewlier.table import Encoded, Encoder
from fewlier.table.labels import ANOMALY, NORMAL, UNLABELLED
from fewlier.trust import Unlabelled

ROLES = tuple(field.name for field in fields(Fold))
"""What a row may do in a fold; role i is bit i of a row's roles."""

# Rows kept at most, by the rarest role they play: a row that calibrates does nothing else, and
# thresholds need many of those; the likelihood is known from a sample.
MOST = {"anomalies": 1000, "validation_anomalies": 1000, "calibration": 1000}
MOST |= {"validation_normals": 500, "normals": 2000}
UNKNOWN = -2
"""In place of the label of a row that is not remembered."""
# Wide tables keep fewer.
MAX_BYTES = 16 * 2**20

Bools = npt.NDArray[np.bool_]
Roles = npt.NDArray[np.uint8]


@final
@dataclass(frozen=True, eq=False)
class Memory:
    """A sample of the rows of a fit, as the networks read them.

    Parameters
    ----------
    encoded : Encoded
        The n rows.
    doubtful : array of bool (n,)
        Rows that may be hidden anomalies.
    novel : array of bool (n, d)
        Cells whose level no other row of the fit has.
    roles : array of uint8 (folds, n)
        What each row does in each fold: a sum of bits, see `ROLES`.
    """

    encoded: Encoded
    doubtful: Bools
    novel: Bools
    roles: Roles

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.encoded)

    @property
    def n_bytes(self) -> int:
        """Return the bytes that it takes in a model file."""
        own = self.doubtful, self.novel, self.roles
        return sum(a.nbytes for a in (*vars(self.encoded).values(), *own))

    @property
    def _row_bytes(self) -> int:
        return self.n_bytes // len(self)

    @classmethod
    def of(cls, plan: Plan) -> "Memory":
        """Draw the rows to keep of a fit: all labelled anomalies and a sample of the others."""
        roles = np.zeros((len(plan.folds), len(plan.encoded)), dtype=np.uint8)
        for fold, bits in zip(plan.folds, roles, strict=True):
            for role, name in enumerate(ROLES):
                bits[getattr(fold, name)] |= 1 << role
        whole = cls(plan.encoded, plan.doubtful, plan.novel, roles)
        return whole._take(_sample(whole, np.random.default_rng(plan.seed)))

    def _take(self, rows: npt.NDArray[np.int64] | Bools) -> "Memory":
        own = self.doubtful[rows], self.novel[rows], self.roles[:, rows]
        return Memory(self.encoded.take(rows), *own)

    def plan(
        self,
        encoder: Encoder,
        more: tuple[Encoded, Labels],
        unlabelled: Unlabelled,
        guarantee: str,
        seed: int,
    ) -> Plan:
        """Plan to train on with more rows.

        New normals train; new anomalies train or validate, whichever has fewer in a fold. None
        calibrates: rows are often labelled because they score high, and do not stand for fresh
        ones. A row labelled now replaces the same row remembered without a label; one that is
        remembered to calibrate, and is no anomaly, goes on calibrating and does not train.
        """
        encoded, labels = more
        is_known = _among(self.encoded, encoded.take(labels != UNLABELLED))
        kept = self._take(~(self.doubtful & is_known))
        if kept.lacks_a_role:
            raise UserError(
                "An update must leave rows of the fit to train, choose and calibrate by; all of "
                "some are labelled now. Fit again with these labels."
            )
        calibrating = np.concatenate([fold.calibration for fold in kept.folds])
        is_news = (labels == ANOMALY) | ~_among(encoded, kept.encoded.take(calibrating))
        encoded, labels = encoded.take(is_news), labels[is_news]
        new = len(kept) + np.random.default_rng(seed).permutation(len(encoded))
        label = np.concatenate([np.full(len(kept), UNLABELLED), labels])[new]
        everything = kept.encoded.followed_by(encoded)
        ids = everything.ids()
        folds = [
            _with_more(fold, number, new[label != ANOMALY], new[label == ANOMALY], ids)
            for number, fold in enumerate(kept.folds)
        ]
        doubtful = (labels == UNLABELLED) & (unlabelled == "robust")
        return Plan(
            encoder,
            everything,
            len(kept) + len(encoded),
            np.concatenate([kept.doubtful, doubtful]),
            np.concatenate([kept.novel, np.zeros_like(encoded.observed)]),
            tuple(folds),
            seed,
            guarantee,
            (_note(labels, len(kept)),),
        )

    def labels_of(self, rows: Encoded) -> Labels:
        """Return the labels under which rows are remembered, `UNKNOWN` where they are not.

        A row that is given more often than it is remembered is new from then on.
        """
        own = np.where(self.doubtful, UNLABELLED, NORMAL)
        for fold in self.folds:
            own[fold.anomalies] = own[fold.validation_anomalies] = ANOMALY
        labels: dict[int, list[int]] = {}
        for row_id, label in zip(self.encoded.ids().tolist(), own.tolist(), strict=True):
            labels.setdefault(row_id, []).append(label)
        found = [labels[i].pop() if labels.get(i) else UNKNOWN for i in rows.ids().tolist()]
        return np.array(found, dtype=np.int8)

    @property
    def folds(self) -> list[Fold]:
        """The rows by role, in each fold."""
        return [
            Fold(*(np.flatnonzero(bits & (1 << role)) for role in range(len(ROLES))))
            for bits in self.roles
        ]

    @property
    def lacks_a_role(self) -> bool:
        """Whether some fold has no normals to train on, to choose by or to calibrate by."""
        roles = ((f.normals, f.validation_normals, f.calibration) for f in self.folds)
        return not all(len(rows) for fold in roles for rows in fold)


def _among(rows: Encoded, others: Encoded) -> Bools:
    """Mark the rows that are copies of one of the others."""
    return np.isin(rows.ids(), others.ids())


def _sample(memory: Memory, rng: np.random.Generator) -> IntArray:
    """Draw rows, of each role as many as are wanted, in the order of the table."""
    share = min(1.0, MAX_BYTES / (sum(MOST.values()) * memory._row_bytes))
    left = np.ones(len(memory), dtype=bool)
    chosen = np.zeros(len(memory), dtype=bool)
    for name, most in MOST.items():
        plays = memory.roles & (1 << ROLES.index(name)) > 0
        n_each = max(1, round(share * most / len(plays)))  # so that no fold goes without
        for in_fold in plays:
            chosen[rng.permutation(np.flatnonzero(left & in_fold & ~chosen))[:n_each]] = True
        left &= ~plays.any(0)
    return np.flatnonzero(chosen)


def _with_more(
    fold: Fold, number: int, normals: IntArray, anomalies: IntArray, ids: IntArray
) -> Fold:
    """Add rows to a fold; where both sides have as many anomalies, folds start with either.

    An anomaly that has a copy joins its side.
    """
    sides: list[list[int]] = [fold.anomalies.tolist(), fold.validation_anomalies.tolist()]
    side_of = {ids[row]: side for side, rows in enumerate(sides) for row in rows}
    for row in anomalies.tolist():
        first, second = map(len, sides)
        fewer = int(second < first if first != second else number % 2)
        sides[side_of.setdefault(ids[row], fewer)].append(row)
    if len(anomalies) and not sides[0]:  # a single anomaly trains
        sides.reverse()
    return Fold(
        np.concatenate([fold.normals, normals]),
        np.array(sides[0], dtype=np.int64),
        fold.validation_normals,
        np.array(sides[1], dtype=np.int64),
        fold.calibration,
    )


def _note(labels: Labels, n_remembered: int) -> str:
    n_anomaly, n_normal, n_unlabelled = (
        int((labels == label).sum()) for label in (ANOMALY, NORMAL, UNLABELLED)
    )
    return (
        f"Updated with {n_anomaly} anomalous, {n_normal} normal and {n_unlabelled} unlabelled "
        f"rows, beside {n_remembered} remembered ones."
    )
