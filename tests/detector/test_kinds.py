"""Kinds of columns, inferred and declared, and their distributions."""

import numpy as np
import pytest
from factories import small
from patients import LABELS, patients

from fewlier import UserError
from fewlier.density.conditionals.categorical import Categorical
from fewlier.density.conditionals.gaussian_mixture import GaussianMixture

# Kinds and conditionals


INFERRED = {
    "height": "real",
    "weight": "real",
    "visits": "count as category",
    "stars": "count as category",
    "spend": "positive",
    "insured": "binary",
    "city": "category",
    "smoker": "category",
}


def test_kinds_are_inferred_and_shown(detector_of_gaps):
    assert detector_of_gaps.summary_.kinds == INFERRED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        ({"stars": "count"}, "count"),
        ({"stars": "real"}, "count as real"),
        ({"stars": "category"}, "count as category"),
        ({"stars": "positive"}, "count as positive"),
    ],
)
def test_a_declared_kind_takes_the_place_of_the_inferred_one(columns, kind):
    table = patients()
    fitted = small(columns=columns, max_epochs=3).fit(table, LABELS)
    assert fitted.summary_.kinds["stars"] == kind
    assert np.isfinite(fitted.anomaly_score(table)).all()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"hight": "real"}, "must name a column of the table; got 'hight'.*'height'"),
        ({"height": "gauss"}, "Column 'height' must be declared one of 'real'.*got 'gauss'"),
        ({"height": "count"}, r"Column 'height' is declared 'count' but has \d+ fractional"),
        ({"stars": "binary"}, r"Column 'stars' is declared 'binary' but has 5 different values"),
        ({"city": "real"}, r"Column 'city' must hold numbers; got"),
        ("gauss", "Every column must be declared one of 'real'.*got 'gauss'"),
    ],
)
def test_a_declaration_that_cannot_hold_is_an_error(columns, message):
    with pytest.raises(UserError, match=message):
        small(columns=columns).fit(patients(), LABELS)


def test_columns_real_scores_every_numeric_column_by_a_mixture_of_gaussians():
    fitted = small(columns="real", selection="best", max_epochs=3).fit(patients(), LABELS)
    assert fitted.summary_.kinds == INFERRED | {
        "visits": "count as real",
        "stars": "count as real",
        "spend": "positive as real",
        "insured": "binary as real",
    }
    groups = fitted.model_.ensemble.density.joint.groups
    n_columns = {type(group.conditional): len(group.columns) for group in groups}
    assert n_columns == {GaussianMixture: 6, Categorical: 2}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "changed"),
    [
        ({"spend": "gaussian_mixture"}, {"spend": "positive as real"}),
        ({"stars": "poisson"}, {"stars": "count"}),
        ({"stars": "gamma"}, {"stars": "count as positive"}),
        ({"insured": "categorical"}, {"insured": "binary as category"}),
        ({"city": "categorical"}, {}),
        ("poisson", {"visits": "count", "stars": "count", "insured": "binary as count"}),
    ],
)
def test_a_distribution_declares_a_column_to_be_what_it_scores(columns, changed):
    table = patients()
    fitted = small(columns=columns, max_epochs=1).fit(table, LABELS)
    assert fitted.summary_.kinds == INFERRED | changed
    assert np.isfinite(fitted.anomaly_score(table)).all()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"hight": "poisson"}, "must name a column of the table; got 'hight'"),
        ({"stars": "beta"}, "Column 'stars' must be declared one of 'real'.*got 'beta'"),
        ({"city": "gaussian_mixture"}, "Column 'city' must hold numbers"),
        ({"height": "poisson"}, "Column 'height' is declared 'count' but has"),
    ],
)
def test_a_distribution_that_cannot_score_a_column_is_an_error(columns, message):
    with pytest.raises(UserError, match=message):
        small(columns=columns).fit(patients(), LABELS)
