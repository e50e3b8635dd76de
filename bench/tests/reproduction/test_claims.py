from dataclasses import replace

import numpy as np
import pytest
from made_up_results import lambda_results, paper_results, result

from fewlier_bench.reproduction.claims import (
    LAMBDA_GRID,
    Verdict,
    average_growth,
    check_claims,
    growth_datasets,
)
from fewlier_bench.reproduction.experiments import lambda_name
from fewlier_bench.reproduction.published import published_auc, setting_datasets


@pytest.fixture(scope="module")
def results():
    return paper_results()


def verdict(claims, *words):
    (claim,) = (c for c in claims if all(word in c.text for word in words))
    return claim.verdict


def moved(results, shift, **where):
    """Return the results with the AUCs of some rows moved."""
    return [
        replace(row, auc=row.auc + shift)
        if all(getattr(row, name) == value for name, value in where.items())
        else row
        for row in results
    ]


def trend(best):
    """Return results of each lambda where `best` is best on every table."""
    rng = np.random.default_rng(0)
    return [
        result(dataset, lambda_name(value), 3, split, 0.8 - 0.05 * gap + rng.normal(0, 0.005))
        for dataset in setting_datasets(3)
        for value, gap in ((v, abs(LAMBDA_GRID.index(v) - best)) for v in LAMBDA_GRID)
        for split in range(5)
    ]


def test_claims_hold_on_results_like_the_papers(results):
    claims = check_claims(results, lambda_results())
    for k in (1, 3, 5):
        assert verdict(claims, "highest", "ten methods", f"k = {k}") is Verdict.HOLDS
    assert verdict(claims, "highest", "unsupervised") is Verdict.HOLDS
    assert verdict(claims, "highest", "classifiers") is Verdict.HOLDS
    assert verdict(claims, "above MADE", "Annthyroid, PenDigits and Wilt") is Verdict.HOLDS
    assert verdict(claims, "above SVM on Arrhythmia and Pima") is Verdict.HOLDS
    assert verdict(claims, "grows") is Verdict.HOLDS


def test_a_claim_fails_when_its_numbers_do(results):
    worse = moved(results, -0.2, method="Proposed", k=3)
    claims = check_claims(worse, [])
    assert verdict(claims, "highest", "ten methods", "k = 3") is Verdict.FAILS
    assert verdict(claims, "highest", "ten methods", "k = 1") is Verdict.HOLDS
    assert verdict(claims, "above MADE") is Verdict.FAILS
    assert verdict(claims, "nowhere") is Verdict.FAILS
    assert verdict(claims, "grows") is Verdict.FAILS


def test_nowhere_below_holds_once_no_table_is(results):
    claims = check_claims(moved(results, -0.1, method="MADE"), [])
    assert verdict(claims, "nowhere") is Verdict.HOLDS


def test_without_results_nothing_can_be_decided():
    assert {claim.verdict for claim in check_claims([], [])} == {Verdict.UNKNOWN}


def test_a_missing_table_leaves_claims_about_it_open(results):
    without = [row for row in results if row.dataset != "Wilt"]
    claims = check_claims(moved(without, -0.1, method="MADE"), [])
    assert verdict(claims, "above MADE") is Verdict.UNKNOWN
    assert verdict(claims, "nowhere") is Verdict.UNKNOWN
    assert verdict(claims, "highest", "ten methods", "k = 3") is Verdict.HOLDS
    (claim,) = (c for c in claims if "ten methods with k = 3" in c.text)
    assert "15 of 16 tables" in claim.figures


@pytest.mark.parametrize(("best", "name"), [(1.5, "low"), (3.5, "intermediate"), (5.5, "high")])
def test_the_range_of_the_best_lambda_decides_its_trend(best, name):
    claims = check_claims([], trend(best))
    for other in ("low", "intermediate", "high"):
        expected = Verdict.HOLDS if other == name else Verdict.FAILS
        assert verdict(claims, f"{other} lambda (") is expected


def test_one_best_lambda_for_all_tables_is_seen():
    assert verdict(check_claims([], trend(3)), "differs from table") is Verdict.FAILS
    assert verdict(check_claims([], lambda_results()), "differs from table") is Verdict.HOLDS


def test_a_high_lambda_that_never_loses_is_effective():
    assert verdict(check_claims([], trend(6)), "Ranking without") is Verdict.FAILS
    assert verdict(check_claims([], trend(0)), "Ranking without") is Verdict.HOLDS


def test_growth_compares_the_same_tables(results):
    without = [row for row in results if (row.dataset, row.k) != ("Wilt", 1)]
    common = growth_datasets(without)
    assert len(growth_datasets(results)) == 14
    assert set(setting_datasets(5)) - set(common) == {"Wilt"}
    pairs = average_growth(without, lambda _: common)
    made = np.mean([published_auc(name, "MADE", 3).auc for name in common])
    assert pairs[0][1] == pytest.approx(made)
    assert not np.isnan([ours for ours, _ in pairs]).any()
    assert np.isnan(average_growth(without, setting_datasets)[1][0])
