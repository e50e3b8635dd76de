"""Scales on which two values of an input are near or far."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, rankdata
from sklearn.preprocessing import StandardScaler

from fewlier import FormatError
from fewlier.modelfile.state import State
from fewlier.score.neighbours.coordinates import COORDINATES, NormalScores, Standardised

SCALES = pytest.mark.parametrize("scales", COORDINATES.values(), ids=COORDINATES)


def draw(n_rows, n_values, seed):
    """Return two inputs of integers, which rows share: any, and with a frequent 0."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-10_000, 10_000, n_values)
    inputs = rng.choice(values, (n_rows, 2)).astype(np.float64)
    inputs[:, 1] *= rng.random(n_rows) < 0.5
    return inputs


TABLES = st.builds(draw, st.integers(1, 200), st.integers(1, 500), st.integers(0, 99))
QUICK = settings(max_examples=30)


def place(coordinates, inputs):
    return coordinates.place(torch.from_numpy(np.asarray(inputs, dtype=np.float32))).numpy()


def normal_scores(inputs):
    """Return the normal scores of rows as SciPy has them; values that are alike share a rank."""
    return norm.ppf(rankdata(inputs, axis=0) / (len(inputs) + 1))


@SCALES
@given(inputs=TABLES)
@QUICK
def test_scales_keep_the_order_of_values_within_a_limit(scales, inputs):
    values = np.sort([*np.linspace(-11_000, 11_000, 500), *inputs[:, 0], -1e30, 1e30])
    placed = place(scales.fit(inputs), np.stack([values, values], 1))
    assert (np.diff(placed, axis=0) >= -1e-6).all()
    assert (np.abs(placed) <= scales.limit).all()


@SCALES
@given(inputs=TABLES)
@QUICK
def test_inputs_have_scales_of_their_own(scales, inputs):
    together = place(scales.fit(inputs), inputs)
    apart = [place(scales.fit(one), one) for one in inputs.T[:, :, None]]
    np.testing.assert_allclose(together, np.hstack(apart), atol=1e-5)


def test_standardised_values_are_those_of_scikit_learn_up_to_eight_deviations():
    rng = np.random.default_rng(0)
    inputs, fresh = rng.normal(3, 5, (200, 4)), rng.normal(3, 20, (200, 4))
    expected = StandardScaler().fit(inputs).transform(fresh)
    assert (np.abs(expected) > 8).any()
    np.testing.assert_allclose(
        place(Standardised.fit(inputs), fresh), expected.clip(-8, 8), atol=1e-5
    )


@given(inputs=TABLES)
@QUICK
def test_normal_scores_of_knots_are_those_of_scipy(inputs):
    fitted = NormalScores.fit(inputs)
    expected = normal_scores(inputs)
    placed = place(fitted, inputs)
    is_knot = [
        np.isin(column.astype(np.float32), knots)
        for column, knots in zip(inputs.T, fitted.knots.numpy(), strict=True)
    ]
    for found, exact, here, column in zip(placed.T, expected.T, is_knot, inputs.T, strict=True):
        np.testing.assert_allclose(found[here], exact[here], atol=1e-4)
        assert here.all() or len(np.unique(column)) > 64


@pytest.mark.parametrize("kind", ["normal", "standard_cauchy", "exponential"])
def test_between_knots_normal_scores_err_by_less_than_a_step(kind):
    inputs = getattr(np.random.default_rng(0), kind)(size=(2000, 2))
    exact = normal_scores(inputs)
    step = np.ptp(exact) / 63
    errors = np.abs(place(NormalScores.fit(inputs), inputs) - exact)
    assert errors.max() < step
    assert errors.mean() < 0.05 * step


def test_rows_far_out_squeeze_others_together_in_deviations_but_not_in_normal_scores():
    inputs = np.random.default_rng(0).normal(size=(500, 1))
    wild = np.where(inputs > np.quantile(inputs, 0.99), 1e6 * inputs, inputs)
    tame = inputs[:, 0] == wild[:, 0]
    before, after = (place(NormalScores.fit(some), some) for some in (inputs, wild))
    np.testing.assert_allclose(after[tame], before[tame], atol=1e-4)
    assert place(Standardised.fit(wild), wild)[tame].std() < 1e-3


@SCALES
@pytest.mark.parametrize("factor", [1e-3, 1e6])
def test_a_unit_does_not_matter(scales, factor):
    inputs = np.random.default_rng(0).exponential(size=(300, 2))
    one, other = (place(scales.fit(some), some) for some in (inputs, factor * inputs))
    np.testing.assert_allclose(one, other, atol=1e-4)


def test_values_beyond_all_rows_lie_where_the_last_of_them_does():
    inputs = np.random.default_rng(0).normal(size=(300, 1))
    placed = place(NormalScores.fit(inputs), [[-1e30], [inputs.min()], [inputs.max()], [1e30]])
    expected = norm.ppf(np.array([1, 1, 300, 300]) / 301)
    np.testing.assert_allclose(placed[:, 0], expected, atol=1e-5)


@SCALES
def test_a_constant_input_lies_at_0(scales):
    inputs = np.random.default_rng(0).normal(size=(50, 2))
    inputs[:, 1] = 7
    fitted = scales.fit(inputs)
    np.testing.assert_array_equal(place(fitted, inputs)[:, 1], 0)
    # Differences from it count as they are, or not at all: there is no row in between.
    expected = {Standardised: [-2, 3], NormalScores: [0, 0]}[scales]
    np.testing.assert_allclose(place(fitted, [[0, 5], [0, 10]])[:, 1], expected, atol=1e-6)


# In a file


@SCALES
@pytest.mark.parametrize("n", [1, 30, 300])
def test_scales_are_read_back_as_they_were(scales, n):
    inputs = np.random.default_rng(0).normal(size=(n, 3))
    fitted = scales.fit(inputs)
    state = fitted.state()
    again = COORDINATES[state.text("name")].from_state(State(*state.flat()), 3)
    np.testing.assert_array_equal(place(again, inputs), place(fitted, inputs))


DAMAGES = {
    "a scale of zero": (Standardised, "scale", lambda a: 0 * a, "not positive"),
    "a negative scale": (Standardised, "scale", np.negative, "not positive"),
    "a mean that is no number": (Standardised, "mean", lambda a: a * np.nan, "NaN"),
    "a mean too many": (Standardised, "mean", lambda a: np.append(a, a[:1]), "not float32"),
    "doubles": (Standardised, "mean", lambda a: a.astype(np.float64), "not float32"),
    "knots that fall": (NormalScores, "knots", np.negative, "not in order"),
    "scores that fall": (NormalScores, "scores", np.negative, "not in order"),
    "scores far out": (NormalScores, "scores", lambda a: a + 7, "out of range"),
    "an infinite knot": (NormalScores, "knots", lambda a: a + np.inf, "NaN or infinity"),
    "a knot too few": (NormalScores, "knots", lambda a: a[:, 1:], "not float32"),
    "an input too few": (NormalScores, "scores", lambda a: a[1:], "not float32"),
}


@pytest.mark.parametrize(("scales", "name", "damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_damaged_scales_are_refused(scales, name, damage, message):
    state = scales.fit(np.random.default_rng(0).normal(size=(100, 3))).state()
    damaged = state.arrays | {name: damage(state.arrays[name])}
    with pytest.raises(FormatError, match=message):
        scales.from_state(State(state.record, damaged), 3)
