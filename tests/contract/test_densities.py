"""What every density promises, whatever its model."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from factories import small_density

from fewlier import FormatError, UserError
from fewlier.density import DENSITIES, settings_from, settings_record
from fewlier.density.base import skeleton
from fewlier.density.rows import Rows
from fewlier.modelfile.state import State
from fewlier.table import Encoder, Table, infer_schema

each_density = pytest.mark.parametrize("name", DENSITIES)


def mixed_frame(n=80):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "real": rng.standard_normal(n),
            "flag": rng.integers(0, 2, n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "count": rng.poisson(3, n),
            "amount": np.exp(2 * rng.standard_normal(n)),
            "ratio": rng.random(n),
        }
    )
    frame.loc[:9, "real"] = np.nan
    frame.loc[5:20, "colour"] = None
    return frame


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def build(name, frame, seed=0, n_passes=4):
    """A density of a table, with its parameters drawn, and the table's rows."""
    table = Table.of(frame)
    schema = infer_schema(table)
    encoder = Encoder.fit(schema, schema.match(table))
    settings = small_density(name, n_orderings=n_passes, latent=5, n_samples=n_passes)
    density = settings.build(encoder, generator(seed))
    density.reset(generator(seed))
    return density, Rows.of(encoder.encode(schema.match(table)))


def passes(density, rows):
    return [density.terms(rows, index) for index in range(density.n_passes)]


@each_density
@pytest.mark.parametrize(
    "columns", [["real"], ["ratio"], ["colour"], ["flag", "amount"], ["real", "ratio"], slice(None)]
)
def test_every_cell_and_row_has_a_finite_term_in_every_pass(name, columns):
    density, rows = build(name, mixed_frame().loc[:, columns])
    for terms in passes(density, rows):
        assert terms.value.shape == terms.presence.shape == rows.targets.shape
        assert terms.rest.shape == rows.targets.shape[:-1]
        assert all(part.isfinite().all() for part in terms)


@each_density
def test_values_far_away_have_finite_terms_and_the_farther_the_lower(name):
    density, rows = build(name, mixed_frame()[["ratio"]])
    far = torch.tensor([2.0, 5.0, 30.0, 692.0])  # 692 is what 1e300 is read as
    for sign in (1, -1):
        targets = (0.5 + sign * far)[:, None]
        inputs = targets.clamp(-1, 2)
        rows = Rows(inputs, targets, targets == targets, targets != targets)
        for terms in passes(density, rows):
            assert terms.value.isfinite().all()
            assert (terms.value[:, 0].diff() < 0).all()


@each_density
def test_terms_are_the_same_each_time(name):
    density, rows = build(name, mixed_frame())
    for first, second in zip(passes(density, rows), passes(density, rows), strict=True):
        assert all(map(torch.equal, first, second))


@each_density
def test_a_row_has_the_same_terms_among_other_rows(name):
    density, rows = build(name, mixed_frame())
    some = torch.tensor([7, 3, 50])
    for all_rows, few in zip(passes(density, rows), passes(density, rows.take(some)), strict=True):
        for part, expected in zip(all_rows, few, strict=True):
            torch.testing.assert_close(part[some], expected)


def gradients(density, rows):
    """Return how far the gradients reach each parameter over ten draws, all of them finite."""
    reached = {key: torch.zeros_like(p) for key, p in density.named_parameters()}
    for seed in range(10):  # a unit may read nothing but zeros under one draw, not under ten
        density.reset(generator(seed))
        density.zero_grad()
        sum(total(terms, generator(seed)) for terms in passes(density, rows)).backward()
        for key, parameter in density.named_parameters():
            assert parameter.grad.isfinite().all(), key
            reached[key] += parameter.grad.abs()
    return reached


def total(terms, weights):
    """Sum all terms with random weights: with equal ones, training may start at an optimum."""
    return sum((part * torch.rand(part.shape, generator=weights)).sum() for part in terms)


@pytest.mark.slow
@each_density
def test_gradients_reach_every_parameter_that_plays_a_part(name):
    density, rows = build(name, mixed_frame(), n_passes=30)
    reached = gradients(density, rows)
    before = passes(density, rows)
    with torch.no_grad():
        for key, parameter in density.named_parameters():
            assert (reached[key] > 0).float().mean() > 0.3, key
            parameter[reached[key] == 0] = 100.0  # a masked weight may be anything
    for terms, expected in zip(passes(density, rows), before, strict=True):
        torch.testing.assert_close(terms.value, expected.value)
        torch.testing.assert_close(terms.presence, expected.presence)


@pytest.mark.slow
def test_gradients_reach_all_of_made():
    for key, gradient in gradients(*build("made", mixed_frame(), n_passes=30)).items():
        assert (gradient > 0).all(), key


@each_density
def test_reset_with_the_same_seed_draws_the_same_parameters(name):
    density, _ = build(name, mixed_frame(), seed=1)
    first = {key: p.detach().clone() for key, p in density.named_parameters()}
    density.reset(generator(2))
    assert any(not torch.equal(p, first[key]) for key, p in density.named_parameters())
    density.reset(generator(1))
    assert all(torch.equal(p, first[key]) for key, p in density.named_parameters())


@each_density
def test_the_same_seed_builds_the_same_density(name):
    (first, rows), (second, _) = (build(name, mixed_frame(), seed=3) for _ in range(2))
    for one, other in zip(passes(first, rows), passes(second, rows), strict=True):
        assert all(map(torch.equal, one, other))


@each_density
def test_the_random_numbers_of_the_caller_are_left_alone(name):
    before = torch.get_rng_state()
    density, rows = build(name, mixed_frame())
    passes(density, rows)
    assert torch.equal(torch.get_rng_state(), before)


@each_density
def test_noise_takes_the_place_of_what_is_kept_for_scoring(name):
    density, rows = build(name, mixed_frame())
    shape = (*rows.targets.shape[:-1], density.n_noise)
    one, other = (torch.randn(shape, generator=generator(seed)) for seed in range(2))
    first, again, second = (density.terms(rows._replace(noise=e), 0) for e in (one, one, other))
    assert all(map(torch.equal, first, again))
    assert torch.equal(first.value, second.value) == (density.n_noise == 0)


@each_density
def test_a_stack_of_members_with_rows_of_their_own_computes_what_each_does_alone(name):
    density, rows = build(name, mixed_frame())
    picks = torch.tensor([[0, 12, 60], [3, 4, 5], [79, 7, 20]])
    members = []
    for seed in range(3):
        density.reset(generator(seed))
        members.append({key: p.detach().clone() for key, p in density.named_parameters()})
    stacked = {key: torch.stack([member[key] for member in members]) for key in members[0]}
    together = density.with_parameters(stacked).terms(rows.take(picks), 0)
    for i, member in enumerate(members):
        alone = density.with_parameters(member).terms(rows.take(picks[i]), 0)
        for part, expected in zip(together, alone, strict=True):
            torch.testing.assert_close(part[i], expected)


@each_density
@pytest.mark.parametrize("columns", [["ratio"], ["colour"], ["count", "flag"], slice(None)])
def test_its_skeleton_has_its_shapes_and_takes_its_arrays(name, columns):
    frame = mixed_frame().loc[:, columns]
    density, rows = build(name, frame)
    table = Table.of(frame)
    encoder = Encoder.fit(infer_schema(table), infer_schema(table).match(table))
    state = density.state_dict()
    n_numbers = sum(array.numel() for array in state.values())
    bare = skeleton(density.settings, encoder, n_numbers)
    assert {n: (v.shape, v.dtype) for n, v in bare.state_dict().items()} == {
        n: (v.shape, v.dtype) for n, v in state.items()
    }
    assert all(array.is_meta for array in bare.state_dict().values())
    bare.load_state_dict(state, assign=True)
    bare.check_structure()
    for found, expected in zip(passes(bare, rows), passes(density, rows), strict=True):
        assert all(map(torch.equal, found, expected))


@each_density
def test_its_settings_survive_as_json_values(name):
    settings = small_density(name, hidden=[np.int64(5), 4], n_components=np.int8(2))
    record = json.loads(json.dumps(settings_record(settings)))
    assert settings_from(State(record)).get_params() == settings.checked().get_params()
    wrong_sizes = [{size: wrong} for size in settings.get_params() for wrong in (None, [0], 2**40)]
    for wrong in ({"name": "nade"}, *wrong_sizes):
        with pytest.raises(FormatError, match="must be"):
            settings_from(State(record | wrong))


@each_density
def test_each_of_its_settings_is_checked(name):
    for parameter in DENSITIES[name]().get_params():
        for wrong in (0, -1, True, 2.5, None, "", "5x", [0], 2**31):
            with pytest.raises(UserError, match=f"'{parameter}' must be .*; got"):
                DENSITIES[name]().set_params(**{parameter: wrong}).checked()


@each_density
def test_it_says_what_its_costs_and_contributions_are(name):
    density, _ = build(name, mixed_frame())
    assert (density.unit == "nats") == density.is_probabilistic
    assert density.remainder.startswith("(")
    assert density.meaning.startswith("A ")
    assert "column contributes" in density.meaning
