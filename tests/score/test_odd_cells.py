"""Impossible and far cells hide no other evidence."""

import numpy as np
import pandas as pd
import pytest
import torch
from factories import small

from fewlier.score.odd_cells import OddCells, raised

N = 500


def goods(n=N, seed=0):
    """Return a table in which the tax follows the country, and fees the amount."""
    rng = np.random.default_rng(seed)
    country = rng.integers(0, 5, n)
    amount = rng.gamma(2, 50, n)
    return pd.DataFrame(
        {
            "country": [f"c{code}" for code in country],
            "tax": 5.0 * country + rng.normal(0, 0.05, n),
            "amount": amount,
            "fees": rng.poisson(amount / 10),
            "size": rng.normal(size=n),
        }
    )


def settings():
    sizes = {"n_orderings": 2, "max_epochs": 60, "learning_rate": 0.01, "lambdas": (0, 10)}
    return sizes | {"columns": {"fees": "count"}}


@pytest.fixture(scope="module", params=["unlabelled", "labelled", "best"])
def detector(request):
    table = goods()
    selection = "best" if request.param == "best" else "average"
    if request.param == "unlabelled":
        return small(**settings()).fit(table)
    table.loc[:5, "size"] = 6.0
    return small(**settings(), selection=selection).fit(table, np.arange(N) < 6)


def odd_rows(n=200):
    """Return rows whose columns do not belong together, so that most are odd."""
    rows, rng = goods(n, seed=1), np.random.default_rng(2)
    return rows.assign(tax=rows["tax"].to_numpy()[rng.permutation(n)])


@pytest.mark.slow
def test_a_category_never_seen_hides_nothing(detector):
    rows = odd_rows()
    unseen = detector.anomaly_score(rows.assign(country="never seen"))
    levels = [detector.anomaly_score(rows.assign(country=f"c{code}")) for code in range(5)]
    # With its likeliest level a row scores no more than with any other.
    assert (unseen >= np.min(levels, 0) - 1e-5).all()
    assert (unseen >= detector.anomaly_score(rows) - 1e-5).all()


@pytest.mark.slow
def test_an_impossible_cell_costs_at_least_what_it_does_in_a_usual_row(detector):
    rows = goods(200, seed=3)
    alone = dict(zip(rows, detector.model_.scorer.alone, strict=True))
    baseline = detector.model_.scorer.baseline
    assert alone["country"] > 0
    for column, value in (("country", "never seen"), ("fees", -1.0)):
        scores = detector.anomaly_score(rows.assign(**{column: value}))
        assert (scores >= baseline + alone[column] - 1e-6).all()


@pytest.mark.slow
@pytest.mark.parametrize("column", ["tax", "amount", "fees", "size"])
def test_a_number_pushed_far_out_takes_no_flag_away(detector, column):
    rows, known = odd_rows(), goods()[column]
    before = detector.anomaly_score(rows)
    for far in (known.max() + 10 * np.ptp(known), known.min() - 10 * np.ptp(known)):
        after = detector.anomaly_score(rows.assign(**{column: far}))
        was, remains = before > detector.threshold_, after > detector.threshold_
        assert (remains | ~was).all()
        if not detector.summary_.n_anomaly:
            assert (after >= before - 1e-5).all()


@pytest.mark.slow
@pytest.mark.parametrize("odd", [{"amount": -1e6}, {"size": 1e4}], ids=str)
def test_a_second_odd_cell_takes_nothing_away(detector, odd):
    rows = odd_rows().assign(**odd)
    before = detector.anomaly_score(rows)
    after = detector.anomaly_score(rows.assign(country="never seen"))
    assert ((after > detector.threshold_) | (before <= detector.threshold_)).all()
    if not detector.summary_.n_anomaly:
        assert (after >= before - 1e-5).all()


def test_two_or_three_odd_cells_are_replaced_together_and_one_at_a_time():
    cells = torch.tensor([[0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 1, 1]]) > 0
    lines, groups = OddCells.groups(cells)
    found = {
        (line, *group) for line, group in zip(lines.tolist(), groups.int().tolist(), strict=True)
    }
    assert len(found) == len(lines)
    assert found == {
        (1, 0, 1, 0, 0),
        *((2, *group) for group in [(1, 0, 1, 0), (1, 0, 0, 0), (0, 0, 1, 0)]),
        *((3, *group) for group in [(0, 1, 1, 1), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)]),
        (4, 1, 1, 1, 1),
    }


@pytest.mark.slow
def test_columns_add_up_and_an_impossible_cell_remains_a_reason(detector):
    rows = odd_rows().assign(country="never seen")
    rows.loc[:50, "amount"] = 1e9
    explanation = detector.explain(rows)
    total = explanation.contributions.sum(1) + explanation.remainder + explanation.baseline
    np.testing.assert_allclose(total, detector.anomaly_score(rows), rtol=1e-9, atol=1e-6)
    assert (explanation.contributions[:, 0] > 0).all()


@pytest.mark.slow
def test_a_row_scores_alike_alone_and_among_others_that_have_odd_cells(detector):
    rows = odd_rows(40)
    rows.loc[3, "country"] = "never seen"
    rows.loc[7, "amount"] = -5.0
    together = detector.anomaly_score(rows)
    for row in (3, 4, 7):
        assert detector.anomaly_score(rows.iloc[[row]])[0] == together[row]


def test_raised_parts_sum_to_the_larger_sum_and_lose_nothing():
    rng = np.random.default_rng(0)
    parts, other = rng.normal(size=(2, 50, 4))
    found = raised(parts, other)
    np.testing.assert_allclose(found.sum(1), np.maximum(parts.sum(1), other.sum(1)))
    assert (found >= parts).all()
