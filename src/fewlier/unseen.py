"""Scores of rows of a fit by what has not seen them: behind thresholds, and for the user."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from fewlier.decision.calibration import Calibration
from fewlier.score.model import FittedModel
from fewlier.training.batches import IntArray
from fewlier.training.folds import one_of_each
from fewlier.training.roles import Plan

# Training rows whose scores stand for all of them, for thresholds by contamination.
SAMPLE = 2000


def calibrated(plan: Plan, model: FittedModel) -> FittedModel:
    """Score the held-back normals by the members that never saw them, and a sample of all rows.

    Copies of one row are one normal, or one anomaly: they say no more than it does.
    """
    kept = _kept(model)
    held_back = np.unique(np.concatenate([plan.folds[fold].calibration for fold in kept]))
    held_back = one_of_each(held_back, plan.ids)
    unseen = [np.isin(held_back, plan.folds[fold].calibration) for fold in kept]
    sample = np.random.default_rng(plan.seed).permutation(plan.n_training)[:SAMPLE]
    calibration = Calibration(
        np.sort(_scores_by_folds(plan, model, held_back, unseen)),
        np.sort(model.score(plan.encoded.take(sample))),
        math.inf,
        plan.guarantee,
        anomaly_scores=np.sort(_held_back_anomaly_scores(plan, model)),
    )
    return model.with_calibration(calibration)


def out_of_fold_scores(plan: Plan, model: FittedModel) -> npt.NDArray[np.float64]:
    """Score the training rows, each by the folds that did not train on it, or by all.

    Neither a row nor its copies are its neighbours, and no tree counts that has seen one of them.
    """
    rows = np.arange(plan.n_training)
    return _scores_by_folds(plan, model, rows, _untrained(plan, model, rows))


def out_of_fold_parts(plan: Plan, model: FittedModel, rows: IntArray) -> npt.NDArray[np.float64]:
    """Return what the density says of rows, column by column, by folds as in their scores."""
    parts = np.empty((len(rows), plan.encoder.n_columns))
    for place, folds in _groups(model, _untrained(plan, model, rows)):
        parts[place] = model.density_parts(plan.encoded.take(rows[place]), folds)
    return parts


def _untrained(plan: Plan, model: FittedModel, rows: IntArray) -> list[npt.NDArray[np.bool_]]:
    """Mark the rows that each kept fold did not train on."""
    return [
        ~np.isin(rows, np.concatenate([plan.folds[fold].normals, plan.folds[fold].anomalies]))
        for fold in _kept(model)
    ]


def _kept(model: FittedModel) -> list[int]:
    """Return the folds that have a member in the score."""
    return sorted({member.fold for member in model.members})


def _held_back_anomaly_scores(plan: Plan, model: FittedModel) -> npt.NDArray[np.float64]:
    """Score the labelled anomalies by the members that did not train on them, where there are."""
    folds = [plan.folds[fold] for fold in _kept(model)]
    rows = np.unique(np.concatenate([[*f.anomalies, *f.validation_anomalies] for f in folds]))
    rows = one_of_each(rows.astype(np.int64), plan.ids)
    unseen = np.array([~np.isin(rows, fold.anomalies) for fold in folds])
    rows, unseen = rows[unseen.any(0)], unseen[:, unseen.any(0)]
    return _scores_by_folds(plan, model, rows, list(unseen))


def _scores_by_folds(
    plan: Plan, model: FittedModel, numbers: IntArray, eligible: Sequence[npt.NDArray[np.bool_]]
) -> npt.NDArray[np.float64]:
    """Score each row by the kept folds eligible for it, or by all where none is."""
    scores = np.empty(len(numbers))
    for place, folds in _groups(model, eligible):
        rows = numbers[place]
        scores[place] = model.score(plan.as_new(rows), folds, ids=plan.ids[rows])
    return scores


def _groups(
    model: FittedModel, eligible: Sequence[npt.NDArray[np.bool_]]
) -> Iterator[tuple[IntArray, list[int] | None]]:
    """Yield the places of rows that the same kept folds are eligible for, with these or None."""
    patterns, group = np.unique(np.stack(eligible, 1), axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        chosen = [fold for fold, use in zip(_kept(model), pattern, strict=True) if use]
        yield np.flatnonzero(group.ravel() == number), chosen or None
