"""Expected ranges: nine fresh normal rows in ten lie in them, and they hold what training held."""

import numpy as np
import pandas as pd
import pytest
from factories import small

from fewlier.errors import FormatError
from fewlier.modelfile.state import State
from fewlier.reasons.reason import UNLIKE
from fewlier.score.ranges import Ranges

N = 700


def machines(n, seed):
    """Return numbers that follow one another: real, positive and counts, and many zeros."""
    rng = np.random.default_rng(seed)
    speed = rng.normal(1500, 200, n)
    torque = 60_000 / speed + rng.normal(0, 2, n)
    wear = rng.gamma(0.7, 30, n)
    stops = rng.poisson(wear / 20)
    loss = np.where(rng.random(n) < 0.8, 0, rng.integers(1000, 2500, n))
    return pd.DataFrame(
        {"speed": speed, "torque": torque, "wear": wear, "stops": stops, "loss": loss}
    )


@pytest.fixture(scope="module", params=["average", "best"])
def fitted(request):
    """Return a detector that has hardly trained, so that what its density expects is far off."""
    table = machines(N, seed=0)
    quick = {"max_epochs": 6, "learning_rate": 0.01, "lambdas": (0,)}
    kinds = {"loss": "count", "stops": "count"}
    return table, small(**quick, selection=request.param, columns=kinds).fit(table)


def ranges(explanation):
    """Return the low and the high ends, shape (n, D)."""
    shape = len(explanation.score), len(explanation.columns)
    expected = explanation.expected
    return expected.low.reshape(shape), expected.high.reshape(shape)


@pytest.mark.slow
def test_nine_fresh_normal_rows_in_ten_lie_in_the_range_of_each_column(fitted):
    _, detector = fitted
    fresh = machines(2000, seed=1)
    low, high = ranges(detector.explain(fresh))
    values = fresh.to_numpy()
    covered = ((values >= low) & (values <= high)).mean(0)
    # The factor is measured on 35 normals with `best`, and 350 with `average`.
    slack = 0.14 if detector.selection == "best" else 0.05
    assert (covered > 0.9 - slack).all()
    assert (covered[:3] < 0.95 if detector.selection == "average" else covered[:3] < 1.01).all()


def test_ranges_hold_only_what_training_held_and_the_column_can_be(fitted):
    table, detector = fitted
    low, high = ranges(detector.explain(machines(300, seed=2)))
    first, last = table.to_numpy().min(0), table.to_numpy().max(0)
    assert (np.isnan(low) | (low >= first - 1e-9 * np.abs(first))).all()
    assert (np.isnan(high) | (high <= last + 1e-9 * np.abs(last))).all()
    counts = np.concatenate([low[:, 3:], high[:, 3:]])
    counts = counts[~np.isnan(counts)]
    assert (counts == np.round(counts)).all()


def test_where_nothing_that_training_held_is_expected_there_is_no_range(fitted):
    _, detector = fitted
    encoder = detector.model_.encoder
    plain = Ranges(encoder, np.ones(encoder.n_columns))
    torque = np.array([1, 1, 1])
    # As fractions of what training held: inside, half outside, and running away.
    found = plain.of(torque, np.array([[0.2, 0.3, 0.4], [-0.1, 0, 0.1], [1.1, 1.3, 1.5]]))
    assert found.is_unlike.tolist() == [False, False, True]
    ends = encoder.ends[1]
    np.testing.assert_allclose(found.low[:2], ends[0] + np.array([0.2, 0]) * np.ptp(ends))
    assert np.isnan([found.low[2], found.median[2], found.high[2]]).all()


def test_a_row_like_none_in_training_is_said_to_be_so():
    x = np.random.default_rng(0).normal(size=500)
    table = pd.DataFrame({"x": x, "y": 3 * x + np.random.default_rng(1).normal(0, 0.1, 500)})
    quick = {"n_orderings": 2, "max_epochs": 60, "learning_rate": 0.01, "lambdas": (0,)}
    row = pd.DataFrame({"x": [2 * x.max() - x.min()], "y": [0.0]})
    reasons = small(**quick).fit(table).explain(row).top(0)
    (y,) = (reason for reason in reasons if reason.column == "y")
    assert y.unlike_training
    assert y.expected_low is None
    assert y.expectation == UNLIKE
    assert str(y).startswith(f"y = 0, {UNLIKE}: ")


def test_stored_ranges_come_back_and_a_negative_one_is_refused(fitted):
    _, detector = fitted
    ranges, encoder = detector.model_.ranges, detector.model_.encoder
    again = Ranges.from_state(State(*ranges.state().flat()), encoder)
    np.testing.assert_array_equal(again.widening, ranges.widening)
    with pytest.raises(FormatError, match="negative"):
        Ranges.from_state(State({}, {"widening": -again.widening}), encoder)
