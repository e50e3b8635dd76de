"""With selection="best" a score is a log density; it integrates to one."""

import numpy as np
import pandas as pd
import pytest
from factories import small
from patients import LABELS, patients, typical, with_missing_cells


def density_on(detector, grid):
    """Return p at points of the only column, by the anomaly score."""
    return np.exp(-detector.anomaly_score(np.asarray(grid)[:, None]))


# The score as a density


def test_with_best_the_score_is_minus_the_log_density():
    table = with_missing_cells(patients())
    fitted = small(selection="best").fit(table, LABELS)
    scores, log_density = fitted.anomaly_score(table), fitted.score_samples(table)
    np.testing.assert_allclose(scores, -log_density, rtol=1e-12)
    odd = pd.concat([typical(height=1e300), typical(city="Paris"), typical(visits=-1.0)])
    assert (fitted.anomaly_score(odd) >= -fitted.score_samples(odd) - 1e-9).all()
    assert fitted.score_unit_ == "nats"


def test_with_best_a_real_column_integrates_to_one_in_the_units_of_the_user():
    height = patients()[["height"]].to_numpy()
    fitted = small(selection="best").fit(height, LABELS)
    low, span = height.min(), np.ptp(height)
    grid = np.linspace(low - span, low + 2 * span, 20_001)
    assert np.trapezoid(density_on(fitted, grid), grid) == pytest.approx(1, abs=1e-3)


def test_with_best_a_real_column_beside_a_category_integrates_to_one():
    table = patients()[["height", "city"]]
    fitted = small(selection="best").fit(table, LABELS)
    low, span = table["height"].min(), np.ptp(table["height"])
    grid = np.linspace(low - span, low + 2 * span, 4001)
    total = sum(
        np.trapezoid(
            np.exp(fitted.score_samples(pd.DataFrame({"height": grid, "city": city}))), grid
        )
        for city in ("Bern", "Oslo", "Rome")
    )
    assert total == pytest.approx(1, abs=1e-3)


def test_with_best_counts_sum_to_one_and_as_real_numbers_integrate_to_one():
    visits = patients()[["visits"]].to_numpy()
    # Of so few distinct values one or two are held back.
    rate = {"selection": "best", "false_alarm_rate": 0.5}
    counted = small(**rate, columns={"x0": "count"}).fit(visits, LABELS)
    assert density_on(counted, np.arange(100)).sum() == pytest.approx(1, abs=1e-5)
    measured = small(**rate, columns="real").fit(visits, LABELS)
    grid = np.linspace(-visits.max(), 2 * visits.max(), 20_001)
    assert np.trapezoid(density_on(measured, grid), grid) == pytest.approx(1, abs=1e-3)


@pytest.mark.slow
def test_with_average_the_density_is_that_of_the_mixture_of_members():
    height = patients()[["height"]].to_numpy()
    fitted = small(selection="average").fit(height, LABELS)
    low, span = height.min(), np.ptp(height)
    grid = np.linspace(low - span, low + 2 * span, 20_001)
    density = np.exp(fitted.score_samples(grid[:, None]))
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=1e-3)
    assert fitted.score_unit_ == "standard units"
