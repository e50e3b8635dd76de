import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from fewlier.density import Made
from fewlier.density.base import mean_over_passes
from fewlier.density.missing_cells import Substitutes, Terms, row_log_p, row_terms, substitutes_from
from fewlier.density.rows import Rows
from fewlier.table import Encoder, Kind, Table, infer_schema

few_seeds = given(seed=st.integers(0, 2**32 - 1))
few = examples(max_examples=5)

N_PASSES = 3


def fitted(frame, kinds=None):
    table = Table.of(frame)
    schema = infer_schema(table, kinds)
    return Encoder.fit(schema, schema.match(table))


def made(encoder, seed, spread=0.5):
    """A density in float64, away from where training starts, as training leaves it."""
    generator = torch.Generator().manual_seed(seed)
    density = Made(hidden=(12,), n_orderings=N_PASSES, n_components=2).build(encoder, generator)
    density.reset(generator)
    with torch.no_grad():
        for parameter in density.parameters():
            parameter += spread * torch.randn(parameter.shape, generator=generator)
    return density.double()


def encode(encoder, frame):
    rows = Rows.of(encoder.encode(encoder.schema.match(Table.of(frame))))
    return rows._replace(inputs=rows.inputs.double(), targets=rows.targets.double())


@torch.no_grad()
def all_terms(density, rows):
    """The terms of every pass."""
    return [density.terms(rows, index) for index in range(density.n_passes)]


def masses(density, rows, weights):
    """Return the total probability of observed rows under each pass, and under their mean."""
    log_p = [(terms.value + terms.presence).sum(-1) for terms in all_terms(density, rows)]
    log_p.append(mean_over_passes(torch.stack(log_p, -1)))
    return [float(weights @ each.exp()) for each in log_p]


def grid(**columns):
    """Return all combinations of (values, weights) per column, and the products of the weights."""
    values = np.meshgrid(*(np.array(values) for values, _ in columns.values()), indexing="ij")
    weights = np.meshgrid(*(weights for _, weights in columns.values()), indexing="ij")
    frame = pd.DataFrame({name: v.ravel() for name, v in zip(columns, values, strict=True)})
    return frame, torch.from_numpy(np.prod(weights, axis=0).ravel())


def each(*values):
    return values, np.ones(len(values))


def real_line(cells, step=0.06):
    """Points and weights of an integral over a column, in its own units.

    Beyond three times the range of the training values, where the encoder compresses values,
    the weights are those of what it compresses them to.
    """
    targets = np.arange(-6, 7, step)
    linear = targets.clip(-1, 2)
    excess = np.sign(targets - linear) * np.expm1(np.abs(targets - linear))
    points = cells.min() + np.ptp(cells) * (linear + excess)
    return points, np.full(len(points), step * np.ptp(cells))


def half_line(n):
    """The atom at zero, and points and weights over many orders of magnitude above it."""
    u, step = np.linspace(np.log(1e-29), np.log(1e5), n, retstep=True)
    return np.append(0, np.exp(u)), np.append(1, np.exp(u) * step)


def discrete_frame(n=60):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "flag": rng.permutation([3, 7] * (n // 2)),
            "colour": rng.permutation(["red", "green", "blue"] * (n // 3)),
            "shape": rng.permutation(["round", "square"] * (n // 2)),
        }
    )


def gaps_frame(n=60):
    """Return a table in which all columns but the last miss cells."""
    frame = discrete_frame(n).astype({"flag": float})
    frame.loc[:9, "flag"] = np.nan
    frame.loc[5:20, "colour"] = None
    return frame


def all_combinations():
    flag, colour, shape = each(3, 7), each("red", "green", "blue"), each("round", "square")
    return grid(flag=flag, colour=colour, shape=shape)


@few_seeds
@few
def test_a_discrete_table_has_total_probability_one(seed):
    encoder = fitted(discrete_frame())
    frame, weights = all_combinations()
    found = masses(made(encoder, seed, spread=2), encode(encoder, frame), weights)
    assert found == pytest.approx([1] * (N_PASSES + 1), abs=1e-6)


@few_seeds
@few
def test_one_real_column_integrates_to_one_in_its_own_units(seed):
    cells = np.random.default_rng(0).normal(1000, 30, 50)
    encoder = fitted(pd.DataFrame({"x": cells}))
    frame, weights = grid(x=real_line(cells, 0.01))
    found = masses(made(encoder, seed, spread=0.2), encode(encoder, frame), weights)
    assert found == pytest.approx([1] * (N_PASSES + 1), abs=1e-3)


@few_seeds
@examples(max_examples=3)
def test_two_real_columns_integrate_to_one_in_their_own_units(seed):
    rng = np.random.default_rng(0)
    x, y = rng.normal(1000, 30, 50), rng.normal(0, 0.01, 50)
    encoder = fitted(pd.DataFrame({"x": x, "y": y}))
    frame, weights = grid(x=real_line(x), y=real_line(y))
    found = masses(made(encoder, seed, spread=0.2), encode(encoder, frame), weights)
    assert found == pytest.approx([1] * (N_PASSES + 1), abs=1e-3)


@few_seeds
@examples(max_examples=3)
def test_a_count_an_amount_and_a_category_have_total_probability_one(seed):
    rng = np.random.default_rng(0)
    data = {"n": rng.poisson(2, 60), "amount": rng.exponential(5, 60), "kind": ["a", "b"] * 30}
    encoder = fitted(pd.DataFrame(data), {"n": "count", "amount": "positive"})
    frame, weights = grid(n=each(*range(40)), amount=half_line(300), kind=each("a", "b"))
    found = masses(made(encoder, seed, spread=0.2), encode(encoder, frame), weights)
    assert found == pytest.approx([1] * (N_PASSES + 1), abs=1e-3)


def base_rate(encoder, observed):
    """Return the share of training cells that are missing, or there, as these are."""
    rate = torch.from_numpy(encoder.missing_rate)
    return torch.where(observed, 1 - rate, rate)


@few_seeds
@few
def test_the_values_of_a_column_and_its_absence_have_total_probability_one(seed):
    encoder = fitted(gaps_frame())
    frame, _ = all_combinations()
    for column, levels in (("flag", [3, 7, np.nan]), ("colour", ["red", "green", "blue", None])):
        d = encoder.schema.names.index(column)
        others = frame.drop(columns=column).drop_duplicates()
        rows = others.merge(pd.Series(levels, name=column, dtype=object), how="cross")
        encoded = encode(encoder, rows[frame.columns])
        base = base_rate(encoder, encoded.observed)
        for terms in all_terms(made(encoder, seed, spread=2), encoded):
            value = torch.where(encoded.observed, terms.value, 0)
            mass = (base * (value + terms.presence).exp())[:, d].reshape(-1, len(levels)).sum(-1)
            torch.testing.assert_close(mass, torch.ones_like(mass))


@few_seeds
@few
def test_a_cell_is_either_missing_or_there(seed):
    encoder = fitted(gaps_frame())
    density = made(encoder, seed, spread=2)
    there = encode(encoder, all_combinations()[0])
    gone = there._replace(observed=torch.zeros_like(there.observed))
    for present, absent in zip(all_terms(density, there), all_terms(density, gone), strict=True):
        total = base_rate(encoder, there.observed) * present.presence.exp()
        total += base_rate(encoder, gone.observed) * absent.presence.exp()
        torch.testing.assert_close(total[:, :2], torch.ones_like(total[:, :2]))


def test_cells_missing_at_random_tell_nothing():
    encoder = fitted(gaps_frame())
    density = made(encoder, seed=0, spread=0)
    for weight in density.network.weights:  # a network that sees no connection to other columns
        torch.nn.init.zeros_(weight)
    for terms in all_terms(density, encode(encoder, gaps_frame())):
        torch.testing.assert_close(terms.presence, torch.zeros_like(terms.presence))


def test_a_column_that_training_never_missed_is_missing_once_in_n_plus_two():
    encoder = fitted(gaps_frame(60))
    rows = encode(encoder, pd.DataFrame({"flag": [3.0], "colour": ["red"], "shape": [None]}))
    for terms in all_terms(made(encoder, seed=0), rows):
        assert terms.presence[0, 2].exp() == pytest.approx(1 / 62)


def test_a_column_that_training_always_missed_is_there_once_in_n_plus_two():
    encoder = fitted(discrete_frame(60).assign(shape=np.nan))
    frame = pd.DataFrame({"flag": [3, 3], "colour": ["red", "red"], "shape": [7, np.nan]})
    for terms in all_terms(made(encoder, seed=0), encode(encoder, frame)):
        assert terms.presence[:, 2].exp().tolist() == pytest.approx([1 / 62, 1])


@pytest.mark.parametrize("kind", list(Kind))
def test_a_column_missing_everywhere_leaves_a_density_over_the_others(kind):
    encoder = fitted(discrete_frame().assign(shape=np.nan), {"shape": kind})
    rows = encode(encoder, all_combinations()[0].assign(shape=np.nan).drop_duplicates())
    for terms in all_terms(made(encoder, seed=0), rows):
        assert (terms.value[:, :2] + terms.presence[:, :2]).sum(-1).exp().sum() == pytest.approx(1)
        assert (terms.value.isfinite() & terms.presence.isfinite()).all()


@pytest.mark.parametrize("kind", [Kind.REAL, Kind.COUNT, Kind.POSITIVE])
@pytest.mark.parametrize("value", [0, 5])
def test_a_constant_column_has_finite_terms_far_from_its_value_too(kind, value):
    encoder = fitted(pd.DataFrame({"x": [value] * 20}), {"x": kind})
    rows = Rows.of(encoder.encode(Table.of(pd.DataFrame({"x": [0, 1, 5, 1e6, 1e300]}))))
    for terms in all_terms(made(encoder, seed=0).float(), rows):
        assert terms.value.isfinite().all()


def terms_of(value, presence=None, rest=None):
    """Terms of rows, of which presence and rest are 0 unless given."""
    presence = torch.zeros_like(value) if presence is None else presence
    return Terms(value, presence, torch.zeros_like(value[..., 0]) if rest is None else rest)


def terms_with_gaps(seed):
    """Terms of 31 rows and which cells are observed; row 0 has no cell at all."""
    rng = np.random.default_rng(seed)
    value, observed = rng.normal(0, 5, (31, 4)), rng.random((31, 4)) < 0.7
    observed[0] = False
    rest = torch.from_numpy(rng.normal(-7, 3, 31))
    return terms_of(torch.from_numpy(value), rest=rest), torch.from_numpy(observed)


@pytest.mark.parametrize("start", [-1e-7, 0.0, 1e-7])
def test_training_sees_presence_once_on_either_side_of_zero_where_it_starts(start):
    flags = torch.tensor([[True, False]]), torch.tensor([[False, False]])
    rows = Rows(torch.zeros(1, 2), torch.zeros(1, 2), *flags)
    presence = torch.full((1, 2), start, requires_grad=True)
    substitutes = Substitutes(torch.tensor([3.0, 4.0]), torch.zeros(2))
    row_log_p(terms_of(torch.tensor([[1.0, 2.0]]), presence), rows, substitutes).sum().backward()
    torch.testing.assert_close(presence.grad, torch.ones(1, 2))


@few_seeds
@few
def test_a_value_outside_its_domain_takes_a_term_below_all(seed):
    terms, observed = terms_with_gaps(seed)
    floor = substitutes_from(terms, observed).floor
    for d in range(4):
        seen = terms.value[observed[:, d], d]
        assert floor[d] == pytest.approx(float(seen.min()) - np.log(len(seen) + 2))


@few_seeds
@few
def test_a_missing_cell_takes_the_mean_term_unless_a_row_of_means_is_too_normal(seed):
    terms, observed = terms_with_gaps(seed)
    mean = torch.where(observed, terms.value, torch.nan).nanmean(0)
    rows = torch.where(observed, terms.value, mean).sum(-1) + terms.rest
    counted = observed.any(-1)
    usual = terms.rest[counted].mean()  # a missing cell takes its share of what the rest usually is
    typical = substitutes_from(terms, observed).typical
    expected = torch.minimum(mean.sum() + usual, rows[counted].median())
    assert typical.sum() == pytest.approx(float(expected))
    torch.testing.assert_close((mean - typical).diff(), torch.zeros(3, dtype=torch.float64))


def test_a_column_never_observed_has_finite_substitutes():
    found = substitutes_from(terms_of(torch.full((3, 2), -7.0)), torch.tensor([[True, False]] * 3))
    torch.testing.assert_close(found.typical, torch.tensor([-7.0, 0.0]))
    torch.testing.assert_close(found.floor, torch.tensor([-7.0 - np.log(5), -np.log(2)]).float())


def test_substitutes_carry_no_gradient():
    value = torch.randn(5, 2, requires_grad=True)
    found = substitutes_from(terms_of(value), torch.ones(5, 2, dtype=torch.bool))
    assert not found.typical.requires_grad
    assert not found.floor.requires_grad


def test_substitutes_stand_in_where_a_cell_has_no_value():
    flags = {"observed": [[True, False, True]], "impossible": [[False, False, True]]}
    rows = Rows(torch.zeros(1, 3), torch.zeros(1, 3), *map(torch.tensor, flags.values()))
    value, presence = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[-0.1, -0.2, -0.3]])
    substitutes = Substitutes(torch.tensor([10.0, 20.0, 30.0]), torch.tensor([-10.0, -20.0, -30.0]))
    found = row_terms(terms_of(value, presence, torch.tensor([-4.0])), rows, substitutes)
    torch.testing.assert_close(found, torch.tensor([[0.9, 19.8, -30.3, -4.0]]))


def test_presence_that_was_expected_does_not_make_a_row_look_more_normal():
    flags = torch.tensor([[True, False]]), torch.tensor([[False, False]])
    rows = Rows(torch.zeros(1, 2), torch.zeros(1, 2), *flags)
    terms = terms_of(torch.tensor([[1.0, 2.0]]), torch.tensor([[0.5, 0.7]]))
    found = row_terms(terms, rows, Substitutes(torch.tensor([3.0, 4.0]), torch.zeros(2)))
    torch.testing.assert_close(found, torch.tensor([[1.0, 4.0, 0.0]]))


@few_seeds
@few
def test_a_value_outside_its_domain_is_less_likely_than_any_seen_in_training(seed):
    frame = discrete_frame().assign(n=np.random.default_rng(0).poisson(2, 60))
    encoder = fitted(frame, {"n": "count"})
    density, normal = made(encoder, seed), encode(encoder, frame)
    odd = pd.DataFrame({"flag": [5], "colour": ["pink"], "shape": ["flat"], "n": [-1.5]})
    for index, terms in enumerate(all_terms(density, normal)):
        seen = row_terms(terms, normal, found := substitutes_from(terms, normal.observed))
        outside = row_terms(density.terms(encode(encoder, odd), index), encode(encoder, odd), found)
        assert outside.isfinite().all()
        assert (outside[:, :-1] < seen[:, :-1]).all()


@few_seeds
@few
def test_leaving_out_a_cell_that_training_never_missed_makes_a_row_look_odder(seed):
    encoder = fitted(discrete_frame())
    density, normal = made(encoder, seed), encode(encoder, discrete_frame())
    gone = encode(encoder, pd.DataFrame({"flag": [np.nan], "colour": [None], "shape": [None]}))
    for index, terms in enumerate(all_terms(density, normal)):
        found = substitutes_from(terms, normal.observed)
        cells = row_terms(density.terms(gone, index), gone, found)[:, :-1]
        assert (cells < found.typical).all()


@few_seeds
@few
def test_a_row_without_any_cell_is_no_more_normal_than_the_median_row(seed):
    encoder = fitted(gaps_frame())
    density, normal = made(encoder, seed, spread=2), encode(encoder, gaps_frame())
    gone = encode(encoder, pd.DataFrame({"flag": [np.nan], "colour": [None], "shape": [None]}))
    for index, terms in enumerate(all_terms(density, normal)):
        found = substitutes_from(terms, normal.observed)
        median = torch.where(normal.observed, terms.value, found.typical).sum(-1).median()
        assert row_terms(density.terms(gone, index), gone, found).sum() <= median


def test_the_mean_over_passes_is_the_log_of_the_mean_density():
    log_p = torch.tensor([[-1.0, -2.0, -3.0], [-1000.0, -1000.0, -1000.0]])
    expected = torch.tensor([np.log(np.exp([-1, -2, -3]).mean()), -1000.0]).float()
    torch.testing.assert_close(mean_over_passes(log_p), expected)
