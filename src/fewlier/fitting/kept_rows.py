"""`KeptRows`: rows of a fit that a model keeps, so that it can learn from more labels later."""

from dataclasses import dataclass, fields, replace
from typing import final

import numpy as np
import numpy.typing as npt

from fewlier.errors import UserError
from fewlier.modelfile.state import State, require
from fewlier.table import Encoded, Encoder
from fewlier.table.arrays import Bools, Codes, Ints
from fewlier.table.labels import ANOMALY, NORMAL, UNLABELLED, RowCounts
from fewlier.training.folds import MAX_FOLDS, Fold
from fewlier.training.plan import Plan, mark_doubtful
from fewlier.training.unlabelled import Unlabelled

ROLES = tuple(field.name for field in fields(Fold))
"""What a row may do in a fold; role i is bit i of a row's roles."""
TRAINS = 1 << ROLES.index("normals")
_AS_ANOMALY = sum(1 << ROLES.index(name) for name in ("anomalies", "validation_anomalies"))

# At most this many rows are kept for each role, of those that are not kept for one before.
MAX_ROWS_OF = {"anomalies": 1000, "validation_anomalies": 1000, "calibration": 1000}
MAX_ROWS_OF |= {"validation_normals": 500, "normals": 2000}
# Wide tables keep fewer.
MAX_KEPT_BYTES = 16 * 2**20
NEW = -1
"""Stands for the number of a kept row where a given row is not one."""

Roles = npt.NDArray[np.uint8]


@final
@dataclass(frozen=True, eq=False)
class News:
    """What the m rows given to an update add to the kept ones: k of them are news.

    Parameters
    ----------
    is_news : array of bool (m,)
        Rows that are not kept, or are kept under another label.
    encoded, labels : Encoded, array of int8 (k,)
        Those rows.
    place : array of int (k,)
        The kept row that each is; `NEW` where it is not kept.
    replaced : array of int8
        Codes that were counted before, and are not any more.
    """

    is_news: Bools
    encoded: Encoded
    labels: Codes
    place: Ints
    replaced: Codes

    def note(self, plan: Plan) -> str:
        """Say what a planned update learns from."""
        counts, n_kept = RowCounts.of(self.labels), len(plan.encoded) - len(self.labels)
        n_known = int((~self.is_news).sum())
        rows, were = ("row", "was") if n_known == 1 else ("rows", "were")
        known = f" {n_known} {rows} {were} known already." if n_known else ""
        return (
            f"Updated with {counts.n_anomaly} anomalous, {counts.n_normal} normal and "
            f"{counts.n_unlabelled} unlabelled rows, and {n_kept} kept ones of the fit.{known}"
        )


@final
@dataclass(frozen=True, eq=False)
class KeptRows:
    """A sample of the rows of a fit, as the networks read them.

    Parameters
    ----------
    encoded : Encoded
        The n rows.
    labels : array of int8 (n,)
        `ANOMALY`, `NORMAL` or `UNLABELLED`.
    counted : array of bool (n,)
        Rows that were given to train on, and are counted as such: all but those that the user
        chose to validate by.
    novel : array of bool (n, d)
        Cells whose level no other row of the fit has, and numbers beyond those of all others.
    roles : array of uint8 (folds, n)
        What each row does in each fold: a sum of bits, see `ROLES`.
    """

    encoded: Encoded
    labels: Codes
    counted: Bools
    novel: Bools
    roles: Roles

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.encoded)

    @property
    def n_bytes(self) -> int:
        """Return the bytes that it takes in a model file."""
        own = self.labels, self.counted, self.novel, self.roles
        return sum(a.nbytes for a in (*vars(self.encoded).values(), *own))

    @property
    def _row_bytes(self) -> int:
        return self.n_bytes // len(self)

    def state(self) -> State:
        """Return what a model file holds of it."""
        own = {name: getattr(self, name) for name in ("labels", "counted", "novel", "roles")}
        return State({"rows": self.encoded.state()}, own)

    @classmethod
    def from_state(cls, state: State, encoder: Encoder) -> "KeptRows":
        """Inverse of `state`, checked."""
        encoded = Encoded.from_state(state.part("rows"), encoder)
        n = len(encoded)
        labels = state.array("labels", np.int8, (n,))
        is_label = np.isin(labels, (ANOMALY, NORMAL, UNLABELLED))
        require(bool(is_label.all()), "a kept row has an unknown label.")
        novel = state.flags("novel", (n, encoder.n_columns))
        is_new = encoded.observed & ~encoded.impossible
        require(not (novel & ~is_new).any(), "kept rows have novel cells that hold no value.")
        roles = state.array("roles", np.uint8, (None, n))
        is_fold = 0 < len(roles) <= MAX_FOLDS and (roles < 1 << len(ROLES)).all()
        require(bool(is_fold), f"kept rows must have known roles in 1 to {MAX_FOLDS} folds.")
        kept = cls(encoded, labels, state.flags("counted", (n,)), novel, roles)
        require(not kept.lacks_a_role, "the kept rows of a fold do not play every role.")
        is_anomaly = (roles & _AS_ANOMALY > 0).any(0)
        agrees = bool((is_anomaly == (labels == ANOMALY)).all())
        require(agrees, "kept rows that play anomalies are not labelled so.")
        return kept

    @classmethod
    def draw(cls, plan: Plan) -> "KeptRows":
        """Draw the rows of a fit to keep: up to 2,000 labelled anomalies, and others."""
        roles = np.zeros((len(plan.folds), len(plan.encoded)), dtype=np.uint8)
        for fold, bits in zip(plan.folds, roles, strict=True):
            for role, name in enumerate(ROLES):
                bits[getattr(fold, name)] |= 1 << role
        counted = np.arange(len(plan.encoded)) < plan.n_training
        whole = cls(plan.encoded, plan.labels, counted, plan.novel, roles)
        return whole._take(_sample(whole, np.random.default_rng(plan.seed)))

    def _take(self, rows: Ints | Bools) -> "KeptRows":
        own = self.labels[rows], self.counted[rows], self.novel[rows], self.roles[:, rows]
        return KeptRows(self.encoded.take(rows), *own)

    def news(self, rows: Encoded, labels: Codes) -> News:
        """Say which of the rows given to an update are new, and which have a new label.

        A labelled row stands for one kept copy of it: one that has this label, else one without a
        label, else any. If it is given more often than it is kept, the further ones are new. A row
        without a label is new only if no copy is kept. Of a large table only a sample is kept; its
        other rows count as new when they are given again.
        """
        place = self._places(rows.ids(), labels)
        is_known = place != NEW
        is_news = ~is_known | ((labels != UNLABELLED) & (labels != self.labels[place]))
        changed = place[is_news & is_known]
        return News(
            is_news,
            rows.take(is_news),
            labels[is_news],
            place[is_news],
            self.labels[changed[self.counted[changed]]],
        )

    def _places(self, ids: Ints, labels: Codes) -> Ints:
        """Return the kept row that each given row is, `NEW` where it is not kept."""
        own = self.encoded.ids()
        left: dict[tuple[int, int], list[int]] = {}
        for row, key in enumerate(zip(own.tolist(), self.labels.tolist(), strict=True)):
            left.setdefault(key, []).append(row)
        last = {row_id: row for row, row_id in enumerate(own.tolist())}
        place = np.full(len(ids), NEW, dtype=np.int64)
        for row in np.flatnonzero(labels == UNLABELLED).tolist():
            place[row] = last.get(int(ids[row]), NEW)
        for under in (None, UNLABELLED, NORMAL, ANOMALY):  # None: under the label that it has
            for row in np.flatnonzero((labels != UNLABELLED) & (place == NEW)).tolist():
                label = int(labels[row]) if under is None else under
                if copies := left.get((int(ids[row]), label)):
                    place[row] = copies.pop()
        return place

    def plan(
        self,
        encoder: Encoder,
        news: News,
        unlabelled: Unlabelled,
        seed: int,
        counts: RowCounts | None = None,
    ) -> Plan:
        """Plan an update with what is new; `counts` are those of all rows, kept or not.

        A new label replaces the old one. A row that is now an anomaly trains or validates,
        whichever fewer anomalies of a fold do. A row that is no longer an anomaly trains, and so
        does a new normal row, unless it is a copy of a kept one: then it plays the same role. No
        row starts to calibrate: rows are often labelled because they score high, and do not stand
        for fresh ones. Unlabelled copies of a row that is now labelled an anomaly are dropped.
        """
        kept = self._relabelled(news)
        if kept.lacks_a_role:
            raise UserError(
                "An update needs normal rows of the fit to train, validate and calibrate; now all "
                "kept rows of one of these roles are labelled anomalies. Fit again with these "
                "labels."
            )
        whole = kept._followed_by(news)
        ids = whole.encoded.ids()
        joins = ~whole.roles.any(0) & (whole.labels == ANOMALY)
        anomalies = np.random.default_rng(seed).permutation(np.flatnonzero(joins))
        folds = [
            _with_anomalies(fold, number, anomalies, ids)
            for number, fold in enumerate(whole._with_normals(ids).folds)
        ]
        return Plan(
            encoder,
            whole.encoded,
            int(whole.counted.sum()),
            whole.labels,
            mark_doubtful(whole.labels, unlabelled, ids),
            whole.novel,
            tuple(folds),
            seed,
            counts or RowCounts.of(whole.labels[whole.counted]),
        )

    def _relabelled(self, news: News) -> "KeptRows":
        """Return the rows under their new labels; those that changed sides have no role."""
        is_old = news.place != NEW
        labels, counted = self.labels.copy(), self.counted.copy()
        labels[news.place[is_old]] = news.labels[is_old]
        counted[news.place[is_old]] = True
        has_moved = (labels == ANOMALY) != (self.labels == ANOMALY)
        roles = np.where(has_moved, 0, self.roles).astype(np.uint8)
        anomalies = news.encoded.take(news.labels == ANOMALY)
        is_copy = np.isin(self.encoded.ids(), anomalies.ids()) & (labels == UNLABELLED)
        return KeptRows(self.encoded, labels, counted, self.novel, roles)._take(~is_copy)

    def _followed_by(self, news: News) -> "KeptRows":
        """Return these rows and the new ones, which have no role; validation rows come last."""
        is_new = news.place == NEW
        more = news.encoded.take(is_new)
        whole = KeptRows(
            self.encoded.followed_by(more),
            np.concatenate([self.labels, news.labels[is_new]]),
            np.concatenate([self.counted, np.ones(len(more), dtype=np.bool_)]),
            np.concatenate([self.novel, np.zeros_like(more.observed)]),
            np.hstack([self.roles, np.zeros((len(self.roles), len(more)), dtype=np.uint8)]),
        )
        return whole._take(np.argsort(~whole.counted, kind="stable"))

    def _with_normals(self, ids: Ints) -> "KeptRows":
        """Give each normal without a role the role of its copy; without a copy it trains."""
        is_normal, has_role = self.labels != ANOMALY, self.roles.any(0)
        copy_of = {ids[row]: row for row in np.flatnonzero(is_normal & has_role)}
        roles = self.roles.copy()
        for row in np.flatnonzero(is_normal & ~has_role):
            copy = copy_of.get(ids[row])
            roles[:, row] = TRAINS if copy is None else roles[:, copy]
        return replace(self, roles=roles)

    @property
    def folds(self) -> list[Fold]:
        """The rows by role, in each fold."""
        return [
            Fold(*(np.flatnonzero(bits & (1 << role)) for role in range(len(ROLES))))
            for bits in self.roles
        ]

    @property
    def lacks_a_role(self) -> bool:
        """Whether some fold has no normals to train, validate or calibrate."""
        roles = ((f.normals, f.validation_normals, f.calibration) for f in self.folds)
        return not all(len(rows) for fold in roles for rows in fold)


def _sample(kept: KeptRows, rng: np.random.Generator) -> Ints:
    """Draw rows of each role, in the order of the table."""
    share = min(1.0, MAX_KEPT_BYTES / (sum(MAX_ROWS_OF.values()) * kept._row_bytes))
    chosen = np.zeros(len(kept), dtype=bool)
    for name, most in MAX_ROWS_OF.items():
        plays = kept.roles & (1 << ROLES.index(name)) > 0
        n_each = max(1, round(share * most / len(plays)))  # so that no fold goes without
        for in_fold in plays:
            chosen[rng.permutation(np.flatnonzero(in_fold & ~chosen))[:n_each]] = True
    return np.flatnonzero(chosen)


def _with_anomalies(fold: Fold, number: int, anomalies: Ints, ids: Ints) -> Fold:
    """Add each anomaly to the side of a fold, training or validation, that has fewer.

    Where both have the same number, even folds train and odd ones validate. An anomaly that has a
    copy joins its side.
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
        fold.normals,
        np.array(sides[0], dtype=np.int64),
        fold.validation_normals,
        np.array(sides[1], dtype=np.int64),
        fold.calibration,
    )
