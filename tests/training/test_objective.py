import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fewlier.training.objective import likelihood_gap, objective, pair_mean

log_ps = st.lists(st.floats(-5, 5), min_size=1, max_size=6)
lambdas = st.floats(0.1, 100)


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def value(normal, anomaly, lam):
    """The objective of one member, every row of which counts."""
    normal, anomaly = tensor(normal), tensor(anomaly)
    weights = torch.ones_like(normal), torch.ones_like(anomaly)
    return float(objective(normal, anomaly, *weights, tensor(lam)))


def stack(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(0, 3, shape))


@given(normal=log_ps, anomaly=log_ps, lam=lambdas)
def test_the_objective_is_that_of_the_paper(normal, anomaly, lam):
    pairs = [1 / (1 + math.exp(-(n - a))) for a in anomaly for n in normal]
    expected = sum(normal) / len(normal) + lam * sum(pairs) / len(pairs)
    assert value(normal, anomaly, lam) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(rows=st.lists(st.tuples(st.floats(-5, 5), st.floats(0.01, 1)), min_size=1, max_size=6))
def test_rows_that_are_trusted_less_count_less_in_the_likelihood_alone(rows):
    normal, trusted = np.array(rows).T
    anomaly, lam = np.array([-1.0, 2.0]), 3.0
    pairs = 1 / (1 + np.exp(anomaly[:, None] - normal))
    expected = np.average(normal, weights=trusted) + lam * pairs.mean()
    weights = torch.ones(len(normal)), torch.ones(2)
    found = objective(tensor(normal), tensor(anomaly), *weights, tensor(lam), tensor(trusted))
    assert float(found) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(normal=log_ps, hidden=log_ps, anomaly=log_ps)
def test_the_auc_against_a_contaminated_pool_is_linear_in_that_against_normals(
    normal, hidden, anomaly
):
    def auc(rows):
        gap = likelihood_gap(tensor(rows), tensor(anomaly))
        return float(pair_mean(gap.sigmoid(), torch.ones(len(rows)), torch.ones(len(anomaly))))

    share = len(hidden) / (len(normal) + len(hidden))
    expected = (1 - share) * auc(normal) + share * auc(hidden)
    assert auc(normal + hidden) == pytest.approx(expected, abs=1e-6)


@given(anomaly=log_ps)
def test_anomalies_against_their_like_have_an_auc_of_a_half(anomaly):
    gap = likelihood_gap(tensor(anomaly), tensor(anomaly))
    weights = torch.ones(len(anomaly), dtype=torch.float64)
    assert float(pair_mean(gap.sigmoid(), weights, weights)) == pytest.approx(1 / 2)


@given(normal=log_ps, anomaly=log_ps)
def test_without_lambda_it_is_the_mean_log_likelihood(normal, anomaly):
    assert value(normal, anomaly, 0.0) == float(tensor(normal).mean())


@given(normal=log_ps, lam=lambdas)
def test_without_anomalies_it_is_the_mean_log_likelihood(normal, lam):
    assert value(normal, [], lam) == float(tensor(normal).mean())


@given(normal=log_ps, anomaly=log_ps, lam=lambdas, rise=st.floats(0.1, 5), data=st.data())
def test_it_rises_with_log_p_of_a_normal_row(normal, anomaly, lam, rise, data):
    row = data.draw(st.integers(0, len(normal) - 1))
    higher = [x + rise * (i == row) for i, x in enumerate(normal)]
    assert value(higher, anomaly, lam) > value(normal, anomaly, lam)


@given(normal=log_ps, anomaly=log_ps, lam=lambdas, rise=st.floats(0.1, 5), data=st.data())
def test_it_falls_with_log_p_of_an_anomaly(normal, anomaly, lam, rise, data):
    row = data.draw(st.integers(0, len(anomaly) - 1))
    higher = [x + rise * (i == row) for i, x in enumerate(anomaly)]
    assert value(normal, higher, lam) < value(normal, anomaly, lam)


@given(normal=log_ps, anomaly=log_ps, lam=lambdas, padding=st.floats(-1e30, 1e30))
def test_rows_of_weight_zero_change_nothing(normal, anomaly, lam, padding):
    padded = [tensor([*rows, padding, -padding]) for rows in (normal, anomaly)]
    weights = [tensor([1.0] * len(rows) + [0.0, 0.0]) for rows in (normal, anomaly)]
    found = float(objective(*padded, *weights, tensor(lam)))
    assert found == pytest.approx(value(normal, anomaly, lam), rel=1e-12, abs=1e-12)


def test_rows_of_weight_zero_receive_no_gradient():
    normal, anomaly = stack(4).requires_grad_(), stack(3, seed=1).requires_grad_()
    weights = tensor([1, 1, 0, 1]), tensor([0, 1, 1])
    objective(normal, anomaly, *weights, tensor(2)).backward()
    assert torch.equal(normal.grad != 0, weights[0] > 0)
    assert torch.equal(anomaly.grad != 0, weights[1] > 0)


def test_a_member_without_any_row_has_the_value_zero():
    nothing = torch.zeros(5, dtype=torch.float64)
    found = objective(stack(5), stack(5), nothing, nothing, tensor(7))
    assert float(found) == 0


def test_the_order_of_rows_does_not_matter():
    normal, anomaly = stack(8), stack(5, seed=1)
    weights = stack(8, seed=2) > 0, stack(5, seed=3) > 0
    a, b = torch.randperm(8, generator=torch.Generator()), torch.arange(5).flip(0)
    found = objective(normal, anomaly, *(w.double() for w in weights), tensor(3))
    weights = weights[0][a].double(), weights[1][b].double()
    permuted = objective(normal[a], anomaly[b], *weights, tensor(3))
    torch.testing.assert_close(permuted, found)


@pytest.mark.parametrize("members", [(3,), (2, 3)], ids=str)
def test_members_do_not_affect_each_other(members):
    normal, anomaly = stack(*members, 6), stack(*members, 4, seed=1)
    weights = (stack(*members, 6, seed=2) > 0).double(), (stack(*members, 4, seed=3) > 0).double()
    lam = stack(*members, seed=4).abs()
    found = objective(normal, anomaly, *weights, lam)
    assert found.shape == members
    for i in np.ndindex(members):
        alone = objective(normal[i], anomaly[i], weights[0][i], weights[1][i], lam[i])
        torch.testing.assert_close(found[i], alone)


def test_gradients_stay_finite_when_the_pairs_are_far_apart():
    normal, anomaly = tensor([-1e30, 0, 1e30]), tensor([1e30, -1e30])
    normal.requires_grad_()
    objective(normal, anomaly, torch.ones(3), torch.ones(2), tensor(1e4)).backward()
    assert normal.grad.isfinite().all()


def test_the_gap_has_one_line_per_anomaly():
    gap = likelihood_gap(tensor([1, 2, 3]), tensor([10, 20]))
    assert gap.tolist() == [[-9, -8, -7], [-19, -18, -17]]


def test_the_mean_over_pairs_weighs_rows():
    pairs = tensor([[1, 2, 3], [4, 5, 6]])
    assert float(pair_mean(pairs, tensor([1, 0, 1]), tensor([1, 1]))) == (1 + 3 + 4 + 6) / 4
    assert float(pair_mean(pairs, tensor([1, 1, 1]), tensor([0, 0]))) == 0
