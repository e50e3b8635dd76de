"""What every conditional promises; `CASES` holds what differs from one to the next."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from scipy import special, stats

from fewlier.density.conditionals import CONDITIONALS
from fewlier.density.conditionals.base import LevelConditional, NumberConditional, Traits
from fewlier.density.conditionals.gaussian_mixture import GaussianMixture
from fewlier.table import Kind
from fewlier.table.columns import USUAL

N_COMPONENTS = 2
# Columns of very different size, one of them without any value but zero; levels are unequal.
MEANS = [0.0, 1e-3, 0.6, 40.0]
LEVELS = [1, 3, 5, 2]
D = len(MEANS)

each_conditional = pytest.mark.parametrize("name", CONDITIONALS)
each_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
seeds = st.integers(0, 2**32 - 1)


def build(name, dtype=torch.float64, means=MEANS, levels=LEVELS):
    mean = torch.tensor(means, dtype=dtype)
    n_levels = torch.tensor(levels if name == "categorical" else [0] * len(levels))
    return CONDITIONALS[name](Traits(mean, n_levels, N_COMPONENTS))


def random_phi(conditional, *shape, seed=0, scale=1.0, dtype=torch.float64):
    rng = np.random.default_rng(seed)
    phi = rng.normal(0, scale, (*shape, conditional.n_parameters, D))
    return torch.tensor(phi, dtype=dtype)


def column_by_column(values):
    """Give every column the same targets, shape (n, D)."""
    return torch.tensor(values, dtype=torch.float64)[:, None].repeat(1, D)


def codes():
    """Every code of every column, by turns."""
    return (torch.arange(max(LEVELS))[:, None] % torch.tensor(LEVELS)).double()


def bounded(s, bound):
    return s / (1 + np.abs(s) / bound)


def mixture_log_density(phi, x):
    logit, mu, width = phi.reshape(3, N_COMPONENTS, D)
    sigma = 0.2 * np.exp(bounded(width, np.log(200)))
    log_pi = special.log_softmax(logit, 0)
    return special.logsumexp(log_pi + stats.norm.logpdf(x[:, None], mu, sigma), 1)


def bernoulli_log_mass(phi, x):
    return stats.bernoulli.logpmf(x, special.expit(phi[0]))


def poisson_log_mass(phi, x):
    rate = np.maximum(MEANS, 1e-3) * np.exp(bounded(phi[0], 15))
    return stats.poisson.logpmf(x, rate)


def gamma_log_density(phi, x):
    zero, log_shape, log_mean = phi
    shape = np.exp(bounded(log_shape, np.log(50)))
    mean = np.where(np.array(MEANS) > 0, MEANS, 1) * np.exp(bounded(log_mean, 15))
    positive = special.log_expit(-zero) + stats.gamma.logpdf(x, shape, scale=mean / shape)
    return np.where(x == 0, special.log_expit(zero), positive)


def categorical_log_mass(phi, x):
    parts = [special.log_softmax(phi[:n, d]) for d, n in enumerate(LEVELS)]
    return np.stack([part[x[:, d].astype(int)] for d, part in enumerate(parts)], 1)


def real_line():
    """Points and weights of an integral over the real line."""
    x, step = np.linspace(-60, 60, 120_001, retstep=True)
    return x, np.full(len(x), step)


def half_line():
    """The atom at zero, and points and weights of an integral over all orders of magnitude."""
    u, step = np.linspace(-400, 30, 100_001, retstep=True)
    return np.append(np.exp(u), 0), np.append(np.exp(u) * step, 1)


def integers(n):
    return np.arange(float(n)), np.ones(n)


class Case(NamedTuple):
    """Targets inside the domain, edges and far values included; a measure on it; the oracle."""

    targets: Callable
    measure: Callable
    log_prob: Callable


def case(targets, measure, log_prob):
    return Case(lambda: column_by_column(targets), measure, log_prob)


# Encoded reals end near +-711, where a double ends; encoded counts and positives at 1e9 and 1e30.
CASES = {
    "gaussian_mixture": case([-711, -1, 0, 0.4, 1, 2, 711], real_line, mixture_log_density),
    "bernoulli": case([0, 1], lambda: integers(2), bernoulli_log_mass),
    "poisson": case([0, 1, 2, 40, 1000, 1e9], lambda: integers(3000), poisson_log_mass),
    "gamma": case([0, 1e-30, 1e-3, 1, 40, 1e6, 1e30], half_line, gamma_log_density),
    "categorical": Case(codes, lambda: integers(max(LEVELS)), categorical_log_mass),
}


@each_conditional
def test_it_scores_columns_of_one_coding(name):
    assert CONDITIONALS[name].coding in Kind


def test_every_coding_has_a_usual_conditional():
    assert {CONDITIONALS[name].coding: name for name in USUAL.values()} == USUAL


@each_conditional
@each_dtype
@pytest.mark.parametrize("shape", [(), (4,), (2, 4)], ids=str)
def test_log_prob_has_the_shape_and_type_of_its_arguments(name, dtype, shape):
    conditional = build(name, dtype)
    x = CASES[name].targets()[1].expand(*shape, D).to(dtype)
    log_p = conditional.log_prob(random_phi(conditional, *shape, dtype=dtype), x)
    assert log_p.shape == (*shape, D)
    assert log_p.dtype == dtype


@each_conditional
def test_parameters_either_locate_a_distribution_or_do_not(name):
    conditional = build(name)
    assert conditional.locates.shape == (conditional.n_parameters,)
    assert conditional.locates.any()


@each_conditional
def test_initial_parameters_are_finite_and_one_row_each(name):
    conditional = build(name)
    initial = conditional.initial()
    assert initial.shape == (conditional.n_parameters, D)
    assert initial.isfinite().all()


@each_conditional
@each_dtype
def test_training_starts_from_a_proper_distribution(name, dtype):
    conditional = build(name, dtype)
    x = CASES[name].targets().to(dtype)
    phi = conditional.initial().to(dtype).expand(len(x), -1, -1)
    assert conditional.log_prob(phi, x).isfinite().all()


@each_conditional
@each_dtype
@pytest.mark.parametrize("size", [0, 50, 1e4])
def test_values_and_gradients_are_finite_for_extreme_parameters(name, dtype, size):
    conditional = build(name, dtype)
    x = CASES[name].targets().to(dtype).repeat(20, 1)
    signs = random_phi(conditional, len(x), dtype=dtype).sign()
    phi = (size * signs).requires_grad_()
    log_p = conditional.log_prob(phi, x)
    (gradient,) = torch.autograd.grad(log_p.sum(), phi)
    assert log_p.isfinite().all()
    assert gradient.isfinite().all()


@each_conditional
@each_dtype
def test_one_extreme_parameter_among_tame_ones_does_no_harm(name, dtype):
    conditional = build(name, dtype)
    x = CASES[name].targets().to(dtype)
    for row in range(conditional.n_parameters):
        for extreme in (-1e4, 1e4):
            phi = random_phi(conditional, len(x), dtype=dtype)
            phi[:, row] = extreme
            log_p = conditional.log_prob(phi.requires_grad_(), x)
            (gradient,) = torch.autograd.grad(log_p.sum(), phi)
            assert log_p.isfinite().all()
            assert gradient.isfinite().all()


@each_conditional
@each_dtype
def test_gradients_reach_every_parameter(name, dtype):
    conditional = build(name, dtype)
    x = CASES[name].targets().to(dtype)
    phi = random_phi(conditional, len(x), dtype=dtype).requires_grad_()
    (gradient,) = torch.autograd.grad(conditional.log_prob(phi, x).sum(), phi)
    used = torch.ones(conditional.n_parameters, D, dtype=torch.bool)
    if name == "categorical":  # a column with one level has nothing to learn
        levels = torch.tensor(LEVELS)
        used = (torch.arange(conditional.n_parameters)[:, None] < levels) & (levels > 1)
    torch.testing.assert_close(gradient.abs().amax(0) > 0, used)


@each_conditional
def test_gradients_are_those_of_finite_differences(name):
    conditional, x = build(name), CASES[name].targets()[:4]
    phi = random_phi(conditional, len(x)).requires_grad_()
    x = x if name == "categorical" else x.clamp(0, 2)  # far away, differences lose their digits
    assert torch.autograd.gradcheck(lambda phi: conditional.log_prob(phi, x), phi)


@pytest.mark.parametrize("n_components", [1, 5])
def test_a_mixture_may_have_any_number_of_components(n_components):
    rng = np.random.default_rng(0)
    phi, x = rng.normal(size=(7, 3, n_components, D)), rng.normal(size=(7, D))
    sigma = 0.2 * np.exp(bounded(phi[:, 2], np.log(200)))
    normal = stats.norm.logpdf(x[:, None], phi[:, 1], sigma)
    expected = special.logsumexp(special.log_softmax(phi[:, 0], 1) + normal, 1)
    mixture = GaussianMixture(Traits(torch.zeros(D), torch.zeros(D).long(), n_components))
    found = mixture.log_prob(torch.tensor(phi).flatten(1, 2), torch.tensor(x))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@each_conditional
@given(seed=seeds, scale=st.sampled_from([0.3, 1.0, 5.0]))
@examples(max_examples=20)
def test_log_prob_agrees_with_scipy(name, seed, scale):
    conditional, x = build(name), CASES[name].targets()
    phi = random_phi(conditional, seed=seed, scale=scale)
    ours = conditional.log_prob(phi.expand(len(x), -1, -1), x).numpy()
    theirs = CASES[name].log_prob(phi.numpy(), x.numpy())
    represented = theirs > -1e29  # further down, a column takes its lowest log density
    np.testing.assert_allclose(ours[represented], theirs[represented], rtol=1e-9, atol=1e-9)
    assert (ours[~represented] <= -1e29).all()


@each_conditional
def test_single_precision_agrees_with_double(name):
    single, double = build(name, torch.float32), build(name, torch.float64)
    x = CASES[name].targets()
    phi = random_phi(double, len(x))
    ours = single.log_prob(phi.float(), x.float()).double()
    torch.testing.assert_close(ours, double.log_prob(phi, x), rtol=1e-4, atol=1e-4)


@each_conditional
@given(seed=seeds)
@examples(max_examples=5)
def test_probabilities_sum_to_one(name, seed):
    conditional = build(name)
    points, weights = CASES[name].measure()
    x = column_by_column(points)
    phi = random_phi(conditional, seed=seed, scale=0.7).expand(len(x), -1, -1)
    mass = torch.tensor(weights) @ conditional.log_prob(phi, x).exp()
    torch.testing.assert_close(mass, torch.ones_like(mass), rtol=0, atol=1e-6)


NUMBERS = [name for name, cls in CONDITIONALS.items() if issubclass(cls, NumberConditional)]
LEVELLED = [name for name, cls in CONDITIONALS.items() if issubclass(cls, LevelConditional)]


def test_a_conditional_has_either_quantiles_or_levels():
    assert sorted(NUMBERS + LEVELLED) == sorted(CONDITIONALS)


@pytest.mark.slow
@pytest.mark.parametrize("name", NUMBERS)
@given(seed=seeds, share=st.sampled_from([0.01, 0.05, 0.5, 0.95, 0.99]))
@examples(max_examples=10)
def test_a_quantile_is_the_least_value_below_which_its_share_lies(name, seed, share):
    conditional = build(name)
    points, weights = CASES[name].measure()
    phi = random_phi(conditional, seed=seed, scale=0.7)
    mass = weights[:, None] * np.exp(
        CASES[name].log_prob(phi.numpy(), column_by_column(points).numpy())
    )
    quantile = conditional.quantile(phi, share).numpy()
    for d in range(D):
        error = 1e-6 + 1e-3 * abs(quantile[d])  # the grid of the integral is no finer
        at_most, below = (mass[points <= quantile[d] + sign * error, d].sum() for sign in (1, -1))
        assert below - 0.01 <= share <= at_most + 0.01


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_quantiles_agree_with_scipy(share):
    phi = random_phi(build("poisson"), 5)
    rate = np.maximum(MEANS, 1e-3) * np.exp(bounded(phi[:, 0].numpy(), 15))
    np.testing.assert_array_equal(
        build("poisson").quantile(phi, share), stats.poisson.ppf(share, rate)
    )
    phi = random_phi(build("gaussian_mixture"), 5)
    phi[:, :N_COMPONENTS] = torch.tensor([50.0, -50.0])[:, None]  # only one component counts
    mu, width = phi[:, N_COMPONENTS].numpy(), phi[:, 2 * N_COMPONENTS].numpy()
    expected = stats.norm.ppf(share, mu, 0.2 * np.exp(bounded(width, np.log(200))))
    np.testing.assert_allclose(build("gaussian_mixture").quantile(phi, share), expected, rtol=1e-9)
    zero, log_shape, log_mean = phi = random_phi(build("gamma"))
    shape = np.exp(bounded(log_shape.numpy(), np.log(50)))
    scale = np.where(np.array(MEANS) > 0, MEANS, 1) * np.exp(bounded(log_mean.numpy(), 15)) / shape
    at_zero = special.expit(zero.numpy())
    above = np.maximum((share - at_zero) / (1 - at_zero), 0)
    expected = stats.gamma.ppf(above, shape, scale=scale)
    np.testing.assert_allclose(build("gamma").quantile(phi, share), expected, rtol=1e-9)


@pytest.mark.parametrize("name", LEVELLED)
@given(seed=seeds)
@examples(max_examples=10)
def test_the_probabilities_of_codes_are_those_that_log_prob_gives_them(name, seed):
    conditional = build(name)
    phi = random_phi(conditional, seed=seed)
    found = conditional.probabilities(phi)
    n_levels = LEVELS if name == "categorical" else [2] * D
    for d, n in enumerate(n_levels):
        x = column_by_column(np.arange(float(n)))
        mass = conditional.log_prob(phi.expand(n, -1, -1), x).exp()[:, d]
        torch.testing.assert_close(found[:n, d], mass)
        assert found[n:, d].sum() == 0
        assert conditional.likeliest(phi)[..., d] == mass.argmax()
        assert mass[conditional.unlikeliest(phi)[..., d].long()] == mass.min()


@pytest.mark.parametrize("name", NUMBERS)
@given(seed=seeds)
@examples(max_examples=10)
def test_the_likeliest_number_is_no_rare_one(name, seed):
    conditional = build(name)
    phi = random_phi(conditional, seed=seed, scale=0.7)
    likeliest = conditional.likeliest(phi).double()
    assert torch.isfinite(conditional.log_prob(phi, likeliest.to(phi))).all()
    low, high = (conditional.quantile(phi, share) for share in (0.001, 0.999))
    assert ((likeliest >= low - 1e-5) & (likeliest <= high + 1e-5)).all()


@each_conditional
def test_some_of_its_columns_are_a_conditional_of_their_own(name):
    conditional = build(name)
    columns = torch.tensor([2, 0, 2])
    phi, x = random_phi(conditional, len(codes())), codes()
    some = conditional.take(columns)
    assert some.n_parameters == conditional.n_parameters
    if name == "bernoulli":
        x = x.clamp_max(1)
    found = some.log_prob(phi[..., columns], x[:, columns])
    torch.testing.assert_close(found, conditional.log_prob(phi, x)[:, columns], rtol=0, atol=0)


@each_conditional
def test_columns_do_not_affect_each_other(name):
    conditional, x = build(name), CASES[name].targets()
    phi, other = random_phi(conditional, len(x)), random_phi(conditional, len(x), seed=1)
    other[..., 1] = phi[..., 1]
    first, second = conditional.log_prob(phi, x), conditional.log_prob(other, x)
    torch.testing.assert_close(first[:, 1], second[:, 1], rtol=0, atol=0)


@pytest.mark.parametrize("levels", [[2, 2, 2, 2], [1, 1, 1, 1], [64, 1, 7, 2], [0, 3, 3, 3]])
def test_a_category_shares_its_mass_among_its_own_levels_only(levels):
    conditional = build("categorical", levels=levels)
    x = column_by_column(np.arange(float(conditional.n_parameters)))
    phi = torch.ones(len(x), conditional.n_parameters, D, dtype=torch.float64)
    mass = conditional.log_prob(phi, x).exp()
    for d, n in enumerate(max(n, 1) for n in levels):
        expected = (torch.arange(len(x)) < n).double() / n
        torch.testing.assert_close(mass[:, d], expected)


def test_bernoulli_starts_at_the_observed_shares():
    initial = build("bernoulli", means=[0.0, 0.3, 0.5, 1.0]).initial()
    shares = torch.tensor([[0.01, 0.3, 0.5, 0.99]], dtype=torch.float64)
    torch.testing.assert_close(initial.sigmoid(), shares)


@pytest.mark.parametrize("name", ["poisson", "gamma"])
def test_counts_and_amounts_start_at_the_mean_of_their_column(name):
    conditional = build(name, means=[0.5, 1.0, 3.0, 20.0])
    points, weights = CASES[name].measure()
    x = column_by_column(points)
    mass = conditional.log_prob(conditional.initial().double().expand(len(x), -1, -1), x).exp()
    mean = torch.tensor(weights) @ (x * mass)
    share = 1 / (1 + np.exp(-3)) if name == "gamma" else 1.0  # the rest of a gamma is at zero
    torch.testing.assert_close(mean, share * torch.tensor([0.5, 1, 3, 20], dtype=torch.float64))


def test_no_two_components_of_a_mixture_start_as_one():
    _, means, _ = build("gaussian_mixture").initial().unflatten(0, (3, N_COMPONENTS))
    assert (means.diff(dim=0) > 0).all()
    assert ((means > 0) & (means < 1)).all()
