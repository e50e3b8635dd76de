"""Which rows stand behind thresholds, and what scores them."""

import numpy as np
import pandas as pd
import pytest
from factories import small

from fewlier.score import held_out
from fewlier.score.part import HeldOut

N, N_ODD = 300, 8


def points(n=N, n_odd=N_ODD, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.normal(size=(n, 2)) + 5 * (np.arange(n) < n_odd)[:, None])


def labels(n_normal=N - N_ODD):
    """Return labels of the anomalies and of some normals; the others are unlabelled."""
    y = np.full(N, np.nan)
    y[:N_ODD] = 1
    y[N - n_normal :] = 0
    return y


@pytest.fixture(scope="module")
def fitted():
    return small(max_epochs=2).fit(points(), labels())


def test_every_normal_is_scored_by_the_fold_that_has_not_trained_on_it(fitted):
    plan, scorer = fitted._plan, fitted.model_.scorer
    scores = []
    for number, fold in enumerate(plan.folds):
        rows = np.setdiff1d(np.arange(N_ODD, N), fold.normals)
        rows = rows[~plan.outermost[rows].any(1)]  # others lie beyond all rows but themselves
        unseen = HeldOut(plan.ids[rows], (number,))
        scores.extend(scorer.score(plan.encoded.take(rows), unseen))
    behind = fitted.model_.calibration.normal_scores
    assert len(behind) == N - N_ODD
    assert N - N_ODD - 4 <= len(scores) < N - N_ODD
    distance = np.abs(np.subtract.outer(scores, behind)).min(1)
    np.testing.assert_array_less(distance, 1e-5)


def test_the_smallest_p_value_is_that_of_all_normals(fitted):
    far = points(1, 0) + 50
    assert fitted.p_value(far)[0] == 1 / (N - N_ODD + 1)


def test_of_many_normals_a_sample_stands_for_all(fitted, monkeypatch):
    monkeypatch.setattr(held_out, "MAX_CALIBRATING", 100)
    some = held_out.calibrate(fitted._plan, fitted.model_.scorer, 0.2).normal_scores
    assert len(some) == 100
    everyone = fitted.model_.calibration.normal_scores
    assert all(np.isclose(everyone, score, rtol=1e-5).any() for score in some)
    assert abs(np.median(some) - np.median(everyone)) < 0.3


@pytest.mark.parametrize(
    ("n_normal", "n_behind", "words"),
    [
        (held_out.MIN_LABELLED, held_out.MIN_LABELLED, "cross-validated"),
        (held_out.MIN_LABELLED - 1, N - N_ODD, "93 of 292 rows behind the rate are unlabelled"),
        (0, N - N_ODD, "292 of 292 rows behind the rate are unlabelled: anomalies hidden there"),
    ],
)
def test_labelled_normals_stand_behind_thresholds_alone_if_they_are_enough(
    n_normal, n_behind, words
):
    rows = points(seed=1)  # of which none is so odd that it is left out
    calibration = small(max_epochs=1).fit(rows, labels(n_normal)).model_.calibration
    assert len(calibration.normal_scores) == n_behind
    assert words in calibration.guarantee


def test_unlabelled_rows_that_are_far_too_odd_do_not_stand_behind_thresholds():
    rows = points(n_odd=0)
    rows.iloc[:15] += np.random.default_rng(1).normal(size=(15, 2)) * 30
    unlabelled = small(max_epochs=2).fit(rows).model_.calibration
    assert N - 15 <= len(unlabelled.normal_scores) <= N - 5
    n_left_out = N - len(unlabelled.normal_scores)
    assert f"{n_left_out} extreme rows were excluded: if they are normal, " in unlabelled.guarantee
    trusted = small(max_epochs=2, unlabelled="normal").fit(rows).model_.calibration
    assert len(trusted.normal_scores) == N


def test_normals_that_resemble_labelled_anomalies_stand_behind_thresholds(monkeypatch):
    """By their scores alone they would be far too odd; without regard to labels they are not."""
    detector = small(max_epochs=2).fit(points(), labels(0))
    plan, scorer = detector._plan, detector.model_.scorer
    everyone = detector.model_.calibration.normal_scores
    honest = held_out._scores

    def resembling(plan, scorer, rows, may_score, **by):
        found = honest(plan, scorer, rows, may_score, **by)
        return found if by else np.where(rows % 20 == 0, found + 50, found)

    monkeypatch.setattr(held_out, "_scores", resembling)
    alike = held_out.calibrate(plan, scorer, 0.2)
    assert len(alike.normal_scores) == len(everyone)
    assert (alike.normal_scores > 40).sum() == 15 - 1  # rows 20, 40, ...; row 0 is an anomaly


def test_after_an_update_the_normals_of_the_fit_stand_behind_thresholds_and_no_new_ones():
    detector = small(max_epochs=2).fit(points(), labels())
    detector.update(points(40, 4, seed=5), np.arange(40) < 4)
    calibration = detector.model_.calibration
    assert len(calibration.normal_scores) == N - N_ODD
    assert calibration.guarantee.startswith("approximate")


@pytest.mark.slow
@pytest.mark.parametrize(
    "y", [None, labels(), labels(0)], ids=["no labels", "labels", "labelled anomalies alone"]
)
def test_fresh_normals_have_small_p_values_as_rarely_as_promised(y):
    shares = []
    for seed in range(8):
        rows = points(n_odd=N_ODD if y is not None else 0, seed=seed)
        detector = small(max_epochs=10, learning_rate=0.01, random_state=seed).fit(rows, y)
        p = detector.p_value(points(1000, 0, seed=100 + seed))
        shares.append([(p <= rate).mean() - rate for rate in (0.01, 0.05, 0.1)])
    error = np.std(shares, 0) / np.sqrt(len(shares))
    assert (np.mean(shares, 0) <= 2 * error).all()
    assert (np.mean(shares, 0) >= [-0.01, -0.025, -0.04]).all()  # nor much more rarely
