"""Out-of-fold scores of the training rows, and the calibration they make."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from fewlier.decision.calibration import Calibration
from fewlier.decision.threshold import Promise, percent, threshold_at_rate
from fewlier.score.part import HeldOut
from fewlier.score.scorer import Scorer
from fewlier.table.arrays import Bools, Floats, Ints
from fewlier.training.folds import Fold, one_of_each
from fewlier.training.plan import Plan
from fewlier.training.unlabelled import may_be_tail

# Training rows whose scores say what new rows like them score, for thresholds by contamination.
SAMPLE = 2000
# Most normals behind thresholds: more would hardly make a rate more certain.
MAX_CALIBRATING = 10_000
# From this many labelled normals on, unlabelled rows do not stand behind thresholds.
MIN_LABELLED = 200


def calibrate(plan: Plan, scorer: Scorer, false_alarm_rate: float) -> Calibration:
    """Score normals and labelled anomalies, each by what has not seen it.

    The rate sets the threshold. Copies of one row are one normal, or one anomaly: they say no more
    than it does.
    """
    rng = np.random.default_rng(plan.seed)
    rows = rng.permutation(_calibrating(plan, scorer))[:MAX_CALIBRATING]
    may_score = [np.isin(rows, fold.calibration) for fold in _folds(plan, scorer)]
    scores, doubtful = _scores(plan, scorer, rows, may_score), plan.doubtful[rows]
    kept = may_be_tail(scores, doubtful)
    if not kept.all():  # and is it odd without regard to labels, which normals may resemble?
        kept |= may_be_tail(_scores(plan, scorer, rows, may_score, by=_likeliest), doubtful)
    normal_scores = np.sort(scores[kept])
    threshold, rule = threshold_at_rate(normal_scores, false_alarm_rate)
    return Calibration(
        normal_scores,
        np.sort(_training_scores(plan, scorer, rng.permutation(_untrained_normals(plan, scorer)))),
        threshold,
        promise_of(plan.folds),
        rule,
        np.sort(_anomaly_scores(plan, scorer)),
        labelled_share=plan.counts.labelled_share,
        caveat=_caveat(int(kept.sum()), int(doubtful[kept].sum()), int((~kept).sum())),
    )


def promise_of(folds: Sequence[Fold]) -> Promise:
    """Say what these roles let thresholds and p-values promise."""
    is_crossed = len(folds) > 1
    for fold in folds:
        chosen = fold.validation_normals[:0] if is_crossed else fold.validation_normals
        if np.isin(fold.calibration, np.concatenate([fold.normals, chosen])).any():
            return Promise.NOTHING
    return Promise.CROSSED if is_crossed else Promise.EXACT


def _caveat(n_rows: int, n_doubtful: int, n_left_out: int) -> str:
    """Say what unlabelled rows do to a promise.

    `n_rows` rows stand behind it, `n_doubtful` of them unlabelled; `n_left_out` others were left
    out because they are too odd to be trusted.
    """
    if not n_doubtful + n_left_out:
        return ""
    among = f"{n_doubtful:,} of {n_rows:,} rows behind the rate are unlabelled: "
    among += "anomalies hidden there make alarms rarer"
    if not n_left_out:
        return among
    rows, they = ("row was", "it is") if n_left_out == 1 else ("rows were", "they are")
    more = percent(n_left_out / (n_rows + n_left_out))
    return (
        f"{among}; {n_left_out:,} extreme {rows} excluded: if {they} normal, expect {more} % more "
        "false alarms"
    )


def _training_scores(plan: Plan, scorer: Scorer, rows: Ints) -> Floats:
    """Score the first of some rows as new rows like them score.

    A row with copies is scored by the whole model: a new row like it has copies there too.
    """
    rows = rows[:SAMPLE]
    _, group, n_copies = np.unique(plan.ids, return_inverse=True, return_counts=True)
    has_copies = n_copies[group][rows] > 1
    alone, scores = rows[~has_copies], np.empty(len(rows))
    may_score = [np.isin(alone, fold.calibration) for fold in _folds(plan, scorer)]
    scores[~has_copies] = _scores(plan, scorer, alone, may_score)
    scores[has_copies] = scorer.score(plan.encoded.take(rows[has_copies]))
    return scores


def _untrained_normals(plan: Plan, scorer: Scorer) -> Ints:
    """Return the normals, unlabelled rows among them, that some fold has not trained on."""
    return np.unique(np.concatenate([fold.calibration for fold in _folds(plan, scorer)]))


def _calibrating(plan: Plan, scorer: Scorer) -> Ints:
    """Return the distinct normals that some fold has not trained on: the labelled, if enough."""
    rows = one_of_each(_untrained_normals(plan, scorer), plan.ids)
    labelled = rows[~plan.doubtful[rows]]
    return labelled if len(labelled) >= MIN_LABELLED else rows


def held_out_scores(plan: Plan, scorer: Scorer) -> Floats:
    """Score all training rows, each by the folds that did not train on it, or by all."""
    rows = np.arange(plan.n_training)
    return _scores(plan, scorer, rows, _untrained(plan, scorer, rows))


def _untrained(plan: Plan, scorer: Scorer, rows: Ints) -> list[Bools]:
    """Mark the rows that each fold of the score did not train on."""
    trained = (np.concatenate([f.normals, f.anomalies]) for f in _folds(plan, scorer))
    return [~np.isin(rows, some) for some in trained]


def _folds(plan: Plan, scorer: Scorer) -> list[Fold]:
    """Return the folds that have a member in the score."""
    return [plan.folds[fold] for fold in scorer.ensemble.folds]


def _anomaly_scores(plan: Plan, scorer: Scorer) -> Floats:
    """Score the labelled anomalies by the members that did not train on them, where there are."""
    folds = _folds(plan, scorer)
    rows = np.unique(np.concatenate([[*f.anomalies, *f.validation_anomalies] for f in folds]))
    rows = one_of_each(rows.astype(np.int64), plan.ids)
    may_score = np.array([~np.isin(rows, fold.anomalies) for fold in folds])
    rows, may_score = rows[may_score.any(0)], may_score[:, may_score.any(0)]
    return _scores(plan, scorer, rows, list(may_score))


def _scores(
    plan: Plan,
    scorer: Scorer,
    rows: Ints,
    may_score: Sequence[Bools],
    by: Callable[[Scorer, tuple[int, ...] | None], Scorer] = lambda scorer, _: scorer,
) -> Floats:
    """Score each row by the folds that may, or by all where none may; `by` makes the scorer."""
    scores = np.empty(len(rows))
    for place, folds in _group_by_folds(scorer, may_score):
        some, own = rows[place], by(scorer, folds)
        scores[place] = own.score(plan.as_new(some), HeldOut(plan.ids[some], folds))
        place = place[plan.outermost[some].any(1)]
        scores[place] += _beyond(plan, own, rows[place], folds)
    return scores


def _beyond(plan: Plan, scorer: Scorer, rows: Ints, folds: tuple[int, ...] | None) -> Floats:
    """Return what rows score more where the range of a column is that of the other rows.

    Networks alone read numbers by their range; in a fit without these rows it would end before.
    """
    share = scorer.addends[0].share
    density = replace(scorer, others=(), alone=np.empty(0))
    held_out = HeldOut(plan.ids[rows], folds)
    here, outside = (density.score(r, held_out) for r in (plan.as_new(rows), plan.as_outside(rows)))
    return share * (outside - here)


def _likeliest(scorer: Scorer, folds: tuple[int, ...] | None) -> Scorer:
    """Return the score of one member of the folds: the one under which normals are likeliest."""
    own = tuple(m for m in scorer.ensemble.members if folds is None or m.fold in folds)
    alone = replace(scorer.ensemble, members=own).likeliest
    return Scorer(scorer.encoder, replace(scorer.ensemble, members=(alone,), weights=(1.0,)))


def _group_by_folds(
    scorer: Scorer, may_score: Sequence[Bools]
) -> Iterator[tuple[Ints, tuple[int, ...] | None]]:
    """Yield the places of rows that the same folds may score, with these, or None for all."""
    patterns, group = np.unique(np.stack(may_score, 1), axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        chosen = (f for f, may in zip(scorer.ensemble.folds, pattern, strict=True) if may)
        yield np.flatnonzero(group.ravel() == number), tuple(chosen) or None
