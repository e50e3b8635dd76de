"""Rules of one threshold each, added up."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fewlier import FormatError
from fewlier.modelfile.state import State
from fewlier.score.learned.steps import MAX_STEPS, Steps

CPU = torch.device("cpu")
N_FEATURES = 3

numbers = st.floats(-100, 100, width=32)
rules = st.tuples(st.integers(0, N_FEATURES - 1), numbers, numbers, numbers)
bags = st.lists(st.lists(rules, max_size=8), min_size=1, max_size=4)


def apply(bags, x):
    """Return what each rule adds to rows, one rule at a time, shape (bags, n, features)."""
    found = np.zeros((len(bags), *x.shape))
    for bag, own in zip(found, bags, strict=True):
        for feature, threshold, below, above in own:
            bag[:, feature] += np.where(x[:, feature] <= threshold, below, above)
    return found


def beside(bags):
    """Return rows at all thresholds, beside them, between them, and far away."""
    at = np.float32([t for bag in bags for _, t, *_ in bag] + [0, -1e9, 1e9])
    values = np.concatenate([at, np.nextafter(at, np.float32(1e9)), (at[1:] + at[:-1]) / 2])
    return np.stack([values, values[::-1], np.roll(values, 1)], 1).astype(np.float32)


@given(bags=bags)
def test_steps_are_the_sum_of_their_rules(bags):
    x = beside(bags)
    steps, expected = Steps.from_rules(bags, N_FEATURES, CPU), apply(bags, x)
    rows = torch.from_numpy(x)
    np.testing.assert_allclose(steps.gains(rows), expected.sum(0), atol=1e-9)
    weights = np.random.default_rng(0).uniform(0, 2, (len(x), len(bags)))
    weighed = np.einsum("nb,bnf->nf", weights, expected)
    found = steps.gains(rows, torch.from_numpy(weights))
    np.testing.assert_allclose(found, weighed, atol=1e-9)


def stored(bags):
    return State(*Steps.from_rules(bags, N_FEATURES, CPU).state().flat())


@given(bags=bags)
def test_a_file_holds_the_sum_over_the_bags(bags):
    x = torch.from_numpy(beside(bags))
    again = Steps.from_state(stored(bags), N_FEATURES, CPU)
    assert again.values.shape[0] == 1
    assert torch.equal(again.gains(x), Steps.from_rules(bags, N_FEATURES, CPU).gains(x))


SOME = [[(0, 1.0, -1.0, 2.0), (0, 3.0, 0.0, 1.0)], [(2, -1.0, 0.5, 0.0), (0, 2.0, 0.0, 1.0)]]


def damage(name, change):
    state = stored(SOME)
    return State({}, state.arrays | {name: change(state.arrays[name])})


DAMAGES = {
    "not in order": ("thresholds", lambda t: t[:, ::-1].copy(), "not in order"),
    "too few features": ("thresholds", lambda t: t[1:], "thresholds"),
    "too few values": ("values", lambda v: v[:, 1:], "values"),
    "single precision": ("values", lambda v: v.astype(np.float32), "values"),
    "not a number": ("values", lambda v: np.where(v == v.max(), np.nan, v), "NaN"),
}


@pytest.mark.parametrize(("name", "change", "message"), DAMAGES.values(), ids=DAMAGES)
def test_damaged_steps_are_refused(name, change, message):
    Steps.from_state(stored(SOME), N_FEATURES, CPU)
    with pytest.raises(FormatError, match=message):
        Steps.from_state(damage(name, change), N_FEATURES, CPU)


@pytest.mark.parametrize("n", [0, MAX_STEPS + 1])
def test_steps_without_a_threshold_or_with_too_many_are_refused(n):
    arrays = {
        "thresholds": np.zeros((N_FEATURES, n), dtype=np.float32),
        "values": np.zeros((N_FEATURES, n + 1)),
    }
    with pytest.raises(FormatError, match="do not have 1 to 1000 thresholds"):
        Steps.from_state(State({}, arrays), N_FEATURES, CPU)
