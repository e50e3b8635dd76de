"""What a fit will do with its rows: how they are encoded, split and held out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from fewlier.decision.calibration import NOTHING
from fewlier.decision.threshold import percent
from fewlier.files import sampling
from fewlier.process.escape import list_names
from fewlier.table import Encoded, Encoder, Kind, Schema, Table
from fewlier.table.arrays import Bools, Codes, Ints
from fewlier.table.labels import ANOMALY, NORMAL, UNLABELLED, check_enough
from fewlier.training.folds import Fold, make_folds
from fewlier.training.settings import Selection
from fewlier.training.stack import Member
from fewlier.training.unlabelled import Unlabelled

# Cross-fitting over two folds lets every labelled anomaly both train and validate.
N_FOLDS: dict[Selection, int] = {"average": 2, "best": 1}

# Of rows that repeat, each counts once; see docs/METHOD.md, "Copies".
EXACT = "exact: no member, epoch or weight depends on the normals behind it"
CROSSED = (
    "approximate: each normal behind it was scored by what had not trained on it; no bound holds "
    "for every table, and in simulations the rates were as promised or lower"
)
REUSED = f"{NOTHING}: the normals behind it also chose the epochs"


@final
@dataclass(frozen=True)
class Plan:
    """A planned fit: its rows, how they are encoded and split, its seed, and notes for the summary.

    The first `n_training` rows are those given to train on; validation rows that the user chose
    follow. `labels` are those of all rows, and `doubtful` marks the rows that may be hidden
    anomalies: the unlabelled ones, unless they are to be taken as normal. `novel` marks the cells
    whose level no other row has, and those that alone are the lowest or highest number of their
    column: whatever has not seen the row has never seen the level, nor a number so far out.
    `guarantee` says what thresholds and p-values promise where every row behind them is normal.
    """

    encoder: Encoder
    encoded: Encoded
    n_training: int
    labels: Codes
    doubtful: Bools
    novel: Bools
    folds: tuple[Fold, ...]
    seed: int
    guarantee: str
    notes: tuple[str, ...]

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
    table: Table,
    labels: Codes,
    selection: Selection,
    seed: int,
    unlabelled: Unlabelled = "robust",
) -> Plan:
    """Plan a fit that splits its own rows."""
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
        guarantee_of(folds),
        (*_notes(labels, folds, unlabelled), *_column_notes(schema)),
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


def guarantee_of(folds: Sequence[Fold]) -> str:
    """Say what these roles let thresholds and p-values promise."""
    is_crossed = len(folds) > 1
    for fold in folds:
        chosen = fold.validation_normals[:0] if is_crossed else fold.validation_normals
        if np.isin(fold.calibration, np.concatenate([fold.normals, chosen])).any():
            return REUSED
    return CROSSED if is_crossed else EXACT


def say_of_doubtful(n_rows: int, n_doubtful: int, n_left_out: int) -> str:
    """Say what unlabelled rows do to a guarantee.

    `n_rows` rows stand behind it, `n_doubtful` of them unlabelled; `n_left_out` others were left
    out because they are too odd to be trusted.
    """
    if not n_doubtful + n_left_out:
        return ""
    among = f"{n_doubtful:,} of {n_rows:,} rows behind the rate are unlabelled: "
    among += "anomalies hidden there make alarms rarer"
    if not n_left_out:
        return among
    rows, are = ("row is", "it is") if n_left_out == 1 else ("rows are", "they are")
    more = percent(n_left_out / (n_rows + n_left_out))
    return (
        f"{among}; {n_left_out:,} far odder {rows} left out: if {are} normal, {more} % more alarms"
    )


def plan_with_validation(
    schema: Schema,
    training: tuple[Table, Codes],
    validation: tuple[Table, Codes],
    seed: int,
    unlabelled: Unlabelled = "robust",
) -> Plan:
    """Plan a fit whose validation rows the user has chosen: nothing is split off."""
    table, labels = training
    normals, anomalies = _by_label(labels)
    own = _by_label(validation[1], "Validation")
    own_normals, own_anomalies = (rows + table.n_rows for rows in own)
    encoder = Encoder.fit(schema, table.take(normals))
    fold = Fold(normals, anomalies, own_normals, own_anomalies, calibration=own_normals)
    encoded = encoder.encode(table.followed_by(validation[0]))
    notes = (*_notes(labels, [fold], unlabelled), *_column_notes(schema))
    known = np.concatenate([labels, validation[1]])
    doubtful = mark_doubtful(known, unlabelled, encoded.ids())
    novel = np.zeros(encoded.observed.shape, dtype=np.bool_)  # validation rows were not seen
    rows = encoded, table.n_rows, known, doubtful, novel
    return Plan(encoder, *rows, (fold,), seed, REUSED, notes)


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


def _notes(labels: Codes, folds: Sequence[Fold], unlabelled: Unlabelled) -> list[str]:
    """Say what the labels made the fit do, beyond the usual."""
    notes = []
    n_unlabelled = int((labels == UNLABELLED).sum())
    if n_unlabelled and unlabelled == "normal":
        is_one = n_unlabelled == 1
        rows = "row trains as a normal row" if is_one else "rows train as normal rows"
        notes.append(f"{n_unlabelled} unlabelled {rows}.")
    trains = any(len(fold.anomalies) for fold in folds)
    validates = any(len(fold.validation_anomalies) for fold in folds)
    if not trains and not validates:
        notes.append(
            "No labelled anomaly: a density of the normal rows alone, its epochs chosen by "
            "validation likelihood."
        )
    elif not validates:
        notes.append(
            "No labelled anomaly is left to validate on: all of them train, epochs are chosen by "
            "validation likelihood, and an average weighs a few lambdas alike."
        )
    elif not trains:
        notes.append(
            "No labelled anomaly is left to train on: lambda is 0, and the labelled anomalies "
            "choose the epoch."
        )
    return notes
