"""What a fit will do with its rows: how they are encoded, split and held out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from fewlier.files import sampling
from fewlier.process.escape import list_names
from fewlier.table import Encoded, Encoder, Kind, Schema, Table
from fewlier.table.arrays import Bools, Codes, Ints
from fewlier.table.labels import ANOMALY, NORMAL, UNLABELLED, RowCounts, check_enough
from fewlier.training.folds import Fold, make_folds
from fewlier.training.settings import Selection
from fewlier.training.stack import Member
from fewlier.training.unlabelled import Unlabelled

# Cross-fitting over two folds lets every labelled anomaly both train and validate.
N_FOLDS: dict[Selection, int] = {"average": 2, "best": 1}


@final
@dataclass(frozen=True)
class Plan:
    """A planned fit: its rows, how they are encoded and split, and its seed.

    The first `n_training` rows are those given to train on; validation rows that the user chose
    follow. `labels` are those of all rows, and `doubtful` marks the rows that may be hidden
    anomalies: the unlabelled ones, unless they are to be taken as normal. `novel` marks the cells
    whose level no other row has, and those that alone are the lowest or highest number of their
    column: whatever has not seen the row has never seen the level, nor a number so far out.
    `counts` are those of all rows of the training table, of which these may be a sample.
    """

    encoder: Encoder
    encoded: Encoded
    n_training: int
    labels: Codes
    doubtful: Bools
    novel: Bools
    folds: tuple[Fold, ...]
    seed: int
    counts: RowCounts

    @cached_property
    def ids(self) -> Ints:
        """Which rows are copies of one another: those that share an id."""
        return self.encoded.ids()

    def as_new(self, rows: Ints) -> Encoded:
        """Return rows as they look to what has seen neither them nor their copies."""
        return self.encoder.as_never_seen(self.encoded.take(rows), self._new_levels[rows])

    def as_outside(self, rows: Ints) -> Encoded:
        """Return the same, with numbers beyond the range of all others where networks read them."""
        return self.encoder.as_outside(self.as_new(rows), self.outermost[rows])

    @cached_property
    def outermost(self) -> Bools:
        """The novel cells that are numbers."""
        return self.novel & ~self._new_levels

    @cached_property
    def _new_levels(self) -> Bools:
        has_levels = [column.coding is Kind.CATEGORY for column in self.encoder.schema.columns]
        return self.novel & np.array(has_levels, dtype=np.bool_)

    @property
    def n_unlabelled(self) -> int:
        """Unlabelled rows among those given to train on."""
        return int((self.labels[: self.n_training] == UNLABELLED).sum())

    @property
    def notes(self) -> tuple[str, ...]:
        """What the rows make the fit do, beyond the usual."""
        notes = [*_label_notes(self.folds), *_column_notes(self.encoder.schema)]
        if (n := self.n_unlabelled) and not self.doubtful.any():
            rows = "row trains as a normal row" if n == 1 else "rows train as normal rows"
            notes.insert(0, f"{n} unlabelled {rows}.")
        return tuple(notes)

    def after(self, update: "Plan") -> "Plan":
        """Return this plan after an update: its folds have also trained on the update's rows."""
        folds = []
        for fold, later in zip(self.folds, update.folds, strict=True):
            trained = update.ids[np.concatenate([later.normals, later.anomalies])]
            more = np.flatnonzero(np.isin(self.ids, trained))
            folds.append(replace(fold, normals=np.union1d(fold.normals, more)))
        return replace(self, folds=tuple(folds))

    def members(self, lambdas: Sequence[float]) -> list[Member]:
        """Return the members to train.

        Members of one fold share a seed, so that lambda is all they differ in; where no anomaly
        trains, lambda = 0 stands for all.
        """
        seeds = np.random.default_rng(self.seed).integers(2**31, size=len(self.folds))
        return [
            Member(float(lam), number, int(seeds[number]), fold)
            for number, fold in enumerate(self.folds)
            for lam in (lambdas if len(fold.anomalies) else (0.0,))
        ]


def make_plan(
    schema: Schema,
    training: tuple[Table, Codes],
    selection: Selection,
    seed: int,
    unlabelled: Unlabelled = "robust",
    counts: RowCounts | None = None,
) -> Plan:
    """Plan a fit that splits its own rows; `counts` are those of all, if these are a sample."""
    table, labels = training
    normals, anomalies = _by_label(labels)
    ids = table.ids()
    doubtful = mark_doubtful(labels, unlabelled, ids)
    rng = np.random.default_rng(seed)
    chosen = _choose(normals, labels, rng) if selection == "average" else normals
    folds = make_folds(chosen, anomalies, N_FOLDS[selection], rng, np.flatnonzero(doubtful), ids)
    used = np.concatenate([[*fold.normals, *fold.validation_normals] for fold in folds])
    seen = np.unique(np.concatenate([used, anomalies])).astype(np.int64)
    more = normals[~np.isin(normals, chosen)] if len(chosen) < len(normals) else normals[:0]
    schema, novel = _known_levels(schema, table, ids, np.concatenate([seen, more]))
    known = np.setdiff1d(seen, anomalies)
    encoder = Encoder.fit(schema, table.take(known))
    encoded = encoder.encode(table)
    novel[known] |= encoder.outermost(encoded.take(known), ids[known])
    return Plan(
        encoder,
        encoded,
        table.n_rows,
        labels,
        doubtful,
        novel,
        tuple(folds),
        seed,
        counts or RowCounts.of(labels),
    )


def _choose(normals: Ints, labels: Codes, rng: np.random.Generator) -> Ints:
    """Choose the normals that a fit learns from and calibrates by: all, or a sample of very many.

    Those that are labelled come first. Columns have the levels of all rows nevertheless.
    """
    most = sampling.MAX_NORMALS
    if len(normals) <= most:
        return normals
    shuffled = rng.permutation(normals)
    is_unlabelled = labels[shuffled] == UNLABELLED
    chosen: Ints = np.sort(shuffled[np.argsort(is_unlabelled, kind="stable")][:most])
    return chosen


def _known_levels(schema: Schema, table: Table, ids: Ints, seen: Ints) -> tuple[Schema, Bools]:
    """Leave out levels of rows that no fold sees, and mark cells whose level no other row has."""
    novel = np.zeros((table.n_rows, len(schema.columns)), dtype=np.bool_)
    columns = list(schema.columns)
    group: Ints | None = None
    for d, column in enumerate(schema.columns):
        has_levels = column.coding is Kind.CATEGORY and column.kind is not Kind.BINARY
        if not has_levels or not column.levels:
            continue
        if group is None:
            _, group = np.unique(ids, return_inverse=True)
        code = column.values(table.cells[column.name])
        has_level = ~np.isnan(code)
        level = np.where(has_level, code, 0).astype(np.int64)
        pairs = np.unique(np.stack([level, group], 1)[seen[has_level[seen]]], axis=0)
        n_rows = np.bincount(pairs[:, 0], minlength=len(column.levels))
        if of_all := table.level_counts.get(column.name):
            n_rows = np.maximum(n_rows, [of_all.get(str(level), 0) for level in column.levels])
        novel[seen, d] = (has_level & (n_rows[level] == 1))[seen]
        if n_rows.any():
            levels = tuple(x for x, n in zip(column.levels, n_rows.tolist(), strict=True) if n)
            columns[d] = replace(column, levels=levels)  # type: ignore[arg-type] # of one type
    return replace(schema, columns=tuple(columns)), novel


def mark_doubtful(labels: Codes, unlabelled: Unlabelled, ids: Ints) -> Bools:
    """Mark the unlabelled rows, but for copies of rows labelled normal, if they may be odd."""
    if unlabelled == "normal":
        return np.zeros(len(labels), dtype=np.bool_)
    doubtful: Bools = labels == UNLABELLED
    return doubtful & ~np.isin(ids, ids[labels == NORMAL])


def plan_with_validation(
    schema: Schema,
    training: tuple[Table, Codes],
    validation: tuple[Table, Codes],
    seed: int,
    unlabelled: Unlabelled = "robust",
    counts: RowCounts | None = None,
) -> Plan:
    """Plan a fit whose validation rows the user has chosen: nothing is split off."""
    table, labels = training
    normals, anomalies = _by_label(labels)
    own = _by_label(validation[1], "Validation")
    own_normals, own_anomalies = (rows + table.n_rows for rows in own)
    encoder = Encoder.fit(schema, table.take(normals))
    fold = Fold(normals, anomalies, own_normals, own_anomalies, calibration=own_normals)
    encoded = encoder.encode(table.followed_by(validation[0]))
    known = np.concatenate([labels, validation[1]])
    doubtful = mark_doubtful(known, unlabelled, encoded.ids())
    novel = np.zeros(encoded.observed.shape, dtype=np.bool_)  # validation rows were not seen
    rows = encoded, table.n_rows, known, doubtful, novel
    return Plan(encoder, *rows, (fold,), seed, counts or RowCounts.of(labels))


def _by_label(labels: Codes, what: str = "A fit") -> tuple[Ints, Ints]:
    """Return the row numbers of normals, unlabelled rows among them, and of anomalies."""
    check_enough(labels, what)
    return np.flatnonzero(labels != ANOMALY), np.flatnonzero(labels == ANOMALY)


def _column_notes(schema: Schema) -> list[str]:
    empty = [column.name for column in schema.columns if column.is_empty]
    if not empty:
        return []
    columns, have = ("Column", "has") if len(empty) == 1 else ("Columns", "have")
    return [f"{columns} {list_names(empty)} {have} no value in normal rows; one will count as odd."]


def _label_notes(folds: Sequence[Fold]) -> list[str]:
    """Say what the labelled anomalies made the fit do, beyond the usual."""
    trains = any(len(fold.anomalies) for fold in folds)
    validates = any(len(fold.validation_anomalies) for fold in folds)
    if not trains and not validates:
        return [
            "No labelled anomaly: a density of the normal rows alone, its epochs chosen by "
            "validation likelihood."
        ]
    if not validates:
        return [
            "No labelled anomaly is left to validate on: all of them train, epochs are chosen by "
            "validation likelihood, and an average weighs a few lambdas alike."
        ]
    if not trains:
        return [
            "No labelled anomaly is left to train on: lambda is 0, and the labelled anomalies "
            "choose the epoch."
        ]
    return []
