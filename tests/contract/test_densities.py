"""What every density promises, whatever its model."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch.func import functional_call, vmap

from fewlier.conditionals.joint import Joint, Rows
from fewlier.densities import DENSITIES
from fewlier.densities.base import Architecture
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
    owner = torch.from_numpy(encoder.input_owner)
    architecture = Architecture((16,), n_passes, n_passes)
    density = DENSITIES[name](Joint(encoder), owner, architecture, generator(seed))
    density.reset(generator(seed))
    return density, Rows.of(encoder.encode(schema.match(table)))


def passes(density, rows):
    return [density(rows, index) for index in range(density.n_passes)]


@each_density
@pytest.mark.parametrize("columns", [["real"], ["colour"], ["flag", "amount"], slice(None)])
def test_every_cell_has_a_finite_term_in_every_pass(name, columns):
    density, rows = build(name, mixed_frame().loc[:, columns])
    for terms in passes(density, rows):
        assert terms.value.shape == terms.presence.shape == rows.targets.shape
        assert (terms.value.isfinite() & terms.presence.isfinite()).all()


@each_density
def test_terms_are_the_same_each_time(name):
    density, rows = build(name, mixed_frame())
    for first, second in zip(passes(density, rows), passes(density, rows), strict=True):
        assert torch.equal(first.value, second.value)
        assert torch.equal(first.presence, second.presence)


@each_density
def test_a_row_has_the_same_terms_among_other_rows(name):
    density, rows = build(name, mixed_frame())
    some = torch.tensor([7, 3, 50])
    for all_rows, few in zip(passes(density, rows), passes(density, rows.take(some)), strict=True):
        torch.testing.assert_close(all_rows.value[some], few.value)
        torch.testing.assert_close(all_rows.presence[some], few.presence)


@each_density
def test_gradients_reach_every_parameter(name):
    density, rows = build(name, mixed_frame(), n_passes=30)
    reached = {key: torch.zeros_like(p) for key, p in density.named_parameters()}
    for seed in range(10):  # a unit may read nothing but zeros under one draw, not under ten
        density.reset(generator(seed))
        density.zero_grad()
        sum(terms.value.sum() + terms.presence.sum() for terms in passes(density, rows)).backward()
        for key, parameter in density.named_parameters():
            assert parameter.grad.isfinite().all(), key
            reached[key] += parameter.grad.abs()
    for key, total in reached.items():
        assert (total > 0).all(), key


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
        assert torch.equal(one.value, other.value)


@each_density
def test_the_random_numbers_of_the_caller_are_left_alone(name):
    before = torch.get_rng_state()
    density, rows = build(name, mixed_frame())
    passes(density, rows)
    assert torch.equal(torch.get_rng_state(), before)


@each_density
def test_a_stack_of_members_computes_what_each_does_alone(name):
    density, rows = build(name, mixed_frame())
    members = []
    for seed in range(3):
        density.reset(generator(seed))
        members.append({key: p.detach().clone() for key, p in density.named_parameters()})
    stacked = {key: torch.stack([member[key] for member in members]) for key in members[0]}
    together = vmap(lambda p: functional_call(density, p, (rows, 0)))(stacked)
    for i, member in enumerate(members):
        alone = functional_call(density, member, (rows, 0))
        torch.testing.assert_close(together.value[i], alone.value)
        torch.testing.assert_close(together.presence[i], alone.presence)
