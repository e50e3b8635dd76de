"""Scores of rows of a fit by what has not seen them."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from fewlier.arrays import Bools, Floats, Ints
from fewlier.decision.calibration import Calibration
from fewlier.score.model import Scorer
from fewlier.score.part import HeldOut
from fewlier.training.folds import one_of_each
from fewlier.training.roles import Plan

# Training rows whose scores stand for all of them, for thresholds by contamination.
SAMPLE = 2000


def calibrate(plan: Plan, scorer: Scorer) -> Calibration:
    """Score the held-back normals and anomalies, each by what has not seen it.

    Copies of one row are one normal, or one anomaly: they say no more than it does.
    """
    folds = [plan.folds[fold] for fold in scorer.ensemble.folds]
    held_back = np.unique(np.concatenate([fold.calibration for fold in folds]))
    held_back = one_of_each(held_back, plan.ids)
    may_score = [np.isin(held_back, fold.calibration) for fold in folds]
    sample = np.random.default_rng(plan.seed).permutation(plan.n_training)[:SAMPLE]
    return Calibration(
        np.sort(_scores(plan, scorer, held_back, may_score)),
        np.sort(scorer.score(plan.encoded.take(sample))),
        math.inf,
        plan.guarantee,
        anomaly_scores=np.sort(_anomaly_scores(plan, scorer)),
    )


def held_out_scores(plan: Plan, scorer: Scorer) -> Floats:
    """Score all training rows, each by the folds that did not train on it, or by all."""
    rows = np.arange(plan.n_training)
    return _scores(plan, scorer, rows, _untrained(plan, scorer, rows))


def held_out_density(plan: Plan, scorer: Scorer, rows: Ints) -> Floats:
    """Return the density's contributions to rows, by folds as in their scores, shape (n, d + 1).

    A row that every fold has trained on is scored by all.
    """
    found = np.empty((len(rows), plan.encoder.n_columns + 1))
    for place, folds in _group_by_folds(scorer, _untrained(plan, scorer, rows)):
        unseen = HeldOut(plan.ids[rows[place]], folds)
        found[place] = scorer.contributions(plan.encoded.take(rows[place]), unseen)
    return found


def _untrained(plan: Plan, scorer: Scorer, rows: Ints) -> list[Bools]:
    """Mark the rows that each fold of the score did not train on."""
    folds = (plan.folds[fold] for fold in scorer.ensemble.folds)
    return [~np.isin(rows, np.concatenate([fold.normals, fold.anomalies])) for fold in folds]


def _anomaly_scores(plan: Plan, scorer: Scorer) -> Floats:
    """Score the labelled anomalies by the members that did not train on them, where there are."""
    folds = [plan.folds[fold] for fold in scorer.ensemble.folds]
    rows = np.unique(np.concatenate([[*f.anomalies, *f.validation_anomalies] for f in folds]))
    rows = one_of_each(rows.astype(np.int64), plan.ids)
    may_score = np.array([~np.isin(rows, fold.anomalies) for fold in folds])
    rows, may_score = rows[may_score.any(0)], may_score[:, may_score.any(0)]
    return _scores(plan, scorer, rows, list(may_score))


def _scores(plan: Plan, scorer: Scorer, rows: Ints, may_score: Sequence[Bools]) -> Floats:
    """Score each row by the folds that may, or by all where none may."""
    scores = np.empty(len(rows))
    for place, folds in _group_by_folds(scorer, may_score):
        some = rows[place]
        scores[place] = scorer.score(plan.as_new(some), HeldOut(plan.ids[some], folds))
    return scores


def _group_by_folds(
    scorer: Scorer, may_score: Sequence[Bools]
) -> Iterator[tuple[Ints, tuple[int, ...] | None]]:
    """Yield the places of rows that the same folds may score, with these, or None for all."""
    patterns, group = np.unique(np.stack(may_score, 1), axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        chosen = (f for f, may in zip(scorer.ensemble.folds, pattern, strict=True) if may)
        yield np.flatnonzero(group.ravel() == number), tuple(chosen) or None
