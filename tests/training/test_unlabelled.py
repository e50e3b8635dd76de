"""How far unlabelled rows are trusted, as a function of log p, and what is said of it."""

import numpy as np
import pandas as pd
import pytest
import torch
from factories import small
from hypothesis import given
from hypothesis import strategies as st

from fewlier.training.unlabelled import (
    FENCE,
    FIRST_FENCE,
    TRIMMED,
    fence_at,
    may_be_tail,
    trim,
    trust,
)

RULES = pytest.mark.parametrize("rule", [trust, trim])


def gaussian_log_p(n, n_columns, seed=0):
    """Log p, up to a constant, of rows of a standard Gaussian; shape (1, n)."""
    rows = np.random.default_rng(seed).normal(size=(n, n_columns))
    return torch.from_numpy(-(rows**2).sum(1) / 2)[None]


def ones(log_p):
    return torch.ones_like(log_p)


def all_doubtful(log_p):
    return torch.ones_like(log_p, dtype=torch.bool)


def weigh(rule, log_p, **changes):
    return rule(log_p, ones(log_p), all_doubtful(log_p), **changes)


@pytest.mark.parametrize("n_columns", [1, 2, 5, 20, 100])
def test_a_clean_pool_keeps_nearly_all_of_its_weight(n_columns):
    assert weigh(trust, gaussian_log_p(5000, n_columns)).mean() > 0.98


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("fence", [FIRST_FENCE, FENCE])
def test_a_far_cluster_gets_next_to_none(share, fence):
    log_p = gaussian_log_p(1000, 5)
    hidden = torch.arange(1000) < 1000 * share
    log_p[0, hidden] = -60 + 0.1 * log_p[0, hidden]
    weight = weigh(trust, log_p, fence=fence)[0]
    assert weight[hidden].max() < 1e-3
    assert weight[~hidden].mean() > (0.97 if fence == FENCE else 0.8)


def test_at_the_fence_a_row_counts_half():
    log_p = torch.linspace(-1000, 1000, 2001, dtype=torch.float64)[None]
    spread = 500 / 0.6745
    log_p[0, 0] = -FENCE * spread  # the lowest already: quartiles stay
    assert float(weigh(trust, log_p)[0, 0]) == pytest.approx(0.5)


def test_the_higher_log_p_the_more_a_row_counts():
    log_p = gaussian_log_p(500, 3).sort().values * 3
    weight = weigh(trust, log_p)[0]
    assert (weight.diff() >= 0).all()
    assert 0 <= weight[0] < 0.5 < weight[-1] <= 1


@RULES
@given(shift=st.floats(-1e4, 1e4), scale=st.floats(1, 1e4))
def test_weights_do_not_depend_on_where_log_p_lies_nor_how_far_it_spreads(rule, shift, scale):
    log_p = 2 * gaussian_log_p(200, 5)  # spreads of at least a nat
    torch.testing.assert_close(weigh(rule, shift + scale * log_p), weigh(rule, log_p))


def test_rows_nearly_alike_are_all_trusted():
    log_p = torch.zeros(1, 100, dtype=torch.float64)
    log_p[0, :10] = -2  # far, in spreads of none; near, in nats
    assert weigh(trust, log_p).min() > 0.99


@RULES
def test_labelled_rows_count_fully_however_unlikely(rule):
    log_p = gaussian_log_p(100, 3)
    log_p[0, :5] = -1e6
    doubtful = (torch.arange(100) >= 5)[None]
    weight = rule(log_p, ones(log_p), doubtful)
    assert (weight[0, :5] == 1).all()
    assert torch.equal(rule(log_p, ones(log_p), torch.zeros_like(doubtful)), ones(log_p))


@RULES
def test_padding_counts_nothing_and_changes_nothing(rule):
    log_p = gaussian_log_p(50, 3)
    padded = torch.cat([log_p, torch.full((1, 30), 1e6, dtype=torch.float64)], 1)
    counted = (torch.arange(80) < 50).double()[None]
    weight = rule(padded, counted, all_doubtful(padded))
    torch.testing.assert_close(weight[:, :50], weigh(rule, log_p))
    assert not weight[:, 50:].any()


@RULES
def test_members_are_weighed_each_by_its_own(rule):
    log_p = torch.cat([gaussian_log_p(60, 3), 7 + 5 * gaussian_log_p(60, 2, seed=1)])
    together = weigh(rule, log_p)
    for i in range(2):
        torch.testing.assert_close(together[i : i + 1], weigh(rule, log_p[i : i + 1]))


@RULES
def test_no_gradient_flows_through_weights(rule):
    assert not weigh(rule, gaussian_log_p(20, 3).requires_grad_()).requires_grad


def test_validation_leaves_out_a_fixed_share_of_the_doubtful_rows():
    log_p = gaussian_log_p(1000, 3)
    doubtful = (torch.arange(1000) < 400)[None]
    weight = trim(log_p, ones(log_p), doubtful)
    assert weight[doubtful].mean() == pytest.approx(1 - TRIMMED, abs=0.005)
    left_out = (weight == 0) & doubtful
    assert log_p[left_out].max() < log_p[doubtful & ~left_out].min()


def test_the_fence_widens_and_then_stays():
    fences = [fence_at(epoch, 100) for epoch in range(1, 101)]
    assert fences[0] == FIRST_FENCE
    assert (np.diff(fences) >= 0).all()
    assert set(fences[50:]) == {FENCE}
    assert fence_at(1, 1) == FIRST_FENCE


@pytest.mark.parametrize("selection", ["average", "best"])
def test_the_note_says_how_many_rows_are_left_out_of_training_and_comparison(selection):
    """The note said "about 0.0 %" while most of the hidden anomalies were left out."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 3)), columns=["a", "b", "c"])
    X.iloc[:6] = 12 + rng.normal(size=(6, 3)) / 10  # hidden anomalies
    y = np.where(np.arange(400) < 250, np.nan, 0.0)
    quick = {"max_epochs": 30, "learning_rate": 0.01, "selection": selection}
    detector = small(**quick).fit(X, y)
    n_rows, n_untrusted = detector.model_.doubtful_rows
    plan = detector._plan
    trains = np.unique(np.concatenate([fold.normals for fold in plan.folds]))
    assert n_rows == (trains < 250).sum()
    assert 4 <= n_untrusted <= 12
    (note,) = [note for note in detector.summary_.notes if note.startswith("250 unlabelled")]
    assert f"of {n_rows} examined, {n_untrusted} count less than half" in note
    if selection == "average":
        views = detector.model_.parts["neighbours"].views
        compared = {tuple(np.unique(view.normals.ids)) for view in views}
        left_out = ~np.isin(plan.ids[trains], *compared)  # all views compare with the same rows
        assert left_out.sum() == n_untrusted
        assert note.endswith("are left out of the comparison.")
        assert set(np.flatnonzero(left_out[: np.searchsorted(trains, 6)])) == set(
            range(np.searchsorted(trains, 6))
        )


# Rows behind thresholds


@pytest.mark.parametrize("n", [100, 3000])
@pytest.mark.parametrize("tail", ["exponential", "normal", "laplace"])
def test_the_tail_of_normals_stands_behind_thresholds(tail, n):
    rng = np.random.default_rng(0)
    left_out = [
        1 - may_be_tail(getattr(rng, tail)(size=n), np.ones(n, bool)).mean() for _ in "x" * 50
    ]
    assert np.mean(left_out) < 0.002


@pytest.mark.parametrize("share", [0.02, 0.07])
def test_rows_that_are_too_many_and_too_odd_for_a_tail_do_not(share):
    rng = np.random.default_rng(0)
    odd = np.arange(1000) < 1000 * share
    kept = may_be_tail(rng.normal(size=1000) + 15 * odd, np.ones(1000, bool))
    assert kept[~odd].all()
    assert not kept[odd].any()


@given(
    st.lists(st.tuples(st.floats(-1e9, 1e9), st.booleans()), min_size=1),
    st.sampled_from([1e-6, 1.0, 1e3]),
)
def test_labelled_rows_stay_and_of_the_others_the_least_odd(rows, scale):
    score, doubtful = np.array([x for x, _ in rows]) * scale, np.array([d for _, d in rows])
    kept = may_be_tail(score, doubtful)
    assert kept[~doubtful].all()
    assert kept[score <= np.median(score)].all()
    if not kept.all():
        assert score[kept & doubtful].max(initial=-np.inf) <= score[~kept].min()
