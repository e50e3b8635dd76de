import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from fewlier import Made
from fewlier.density.networks import MaskedMLP, autoregressive_masks, draw_degrees
from fewlier.density.rows import Rows
from fewlier.table import Encoder, Table, infer_schema

sizes = st.sampled_from([1, 2, 3, 5])
orderings = sizes.flatmap(lambda n: st.permutations(range(n)))
seeds = st.integers(0, 2**32 - 1)


def owners(n_columns, seed):
    """Give every column one to three inputs and one to three outputs."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, (2, n_columns))
    return [torch.from_numpy(rng.permutation(np.repeat(np.arange(n_columns), c))) for c in counts]


def dependence(function, n_inputs):
    """Return which output depends on which input, at some of 32 random rows; shape (o, i)."""
    rows = torch.rand(32, n_inputs, generator=torch.Generator().manual_seed(0))
    jacobian = torch.autograd.functional.jacobian(lambda x: function(x).sum(0), rows)
    return (jacobian != 0).any(1)


def drawn_degrees(n_columns, widths, generator):
    module = torch.nn.Module()
    for layer, width in enumerate(widths):
        module.register_buffer(f"degrees_{layer}", torch.empty(width, dtype=torch.int64))
    draw_degrees(module, n_columns, generator)
    return list(module.buffers())


def masked_network(ordering, inputs, outputs, hidden, seed):
    generator = torch.Generator().manual_seed(seed)
    position = torch.tensor(ordering)
    degrees = drawn_degrees(len(ordering), hidden, generator)
    masks = autoregressive_masks(position[inputs], degrees, position[outputs])
    network = MaskedMLP([len(inputs), *hidden, len(outputs)])
    network.reset(torch.zeros(len(outputs)), generator)
    return lambda x: network(x, masks)


def mixed_frame(columns="real flag colour count amount", n=40):
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
    frame.loc[3, "real"] = np.nan
    frame.loc[5, "colour"] = None
    return frame[columns.split()]


def made(frame, settings, seed):
    table = Table.of(frame)
    schema = infer_schema(table)
    encoder = Encoder.fit(schema, schema.match(table))
    generator = torch.Generator().manual_seed(seed)
    density = settings.build(encoder, generator)
    density.reset(generator)
    return density, encoder


def column_dependence(density, encoder, index):
    """Return which column's parameters depend on which column's inputs, shape (D, D)."""
    depends = dependence(lambda x: density.network(x, density.masks(index)), encoder.n_inputs)
    columns = torch.zeros(encoder.n_columns, encoder.n_columns, dtype=torch.bool)
    for o, i in depends.nonzero().tolist():
        columns[density.joint.owner[o], encoder.input_owner[i]] = True
    return columns


@given(ordering=orderings, hidden=st.sampled_from([(8,), (7, 9), ()]), seed=seeds)
@examples(max_examples=60)
def test_an_output_sees_inputs_of_earlier_columns_only(ordering, hidden, seed):
    inputs, outputs = owners(len(ordering), seed)
    depends = dependence(masked_network(ordering, inputs, outputs, hidden, seed), len(inputs))
    position = torch.tensor(ordering)
    allowed = position[inputs] < position[outputs][:, None]
    assert not (depends & ~allowed).any()


@given(ordering=orderings, hidden=st.sampled_from([(100,), (100, 100), ()]), seed=seeds)
@examples(max_examples=30)
def test_an_output_of_a_wide_network_sees_all_inputs_of_earlier_columns(ordering, hidden, seed):
    inputs, outputs = owners(len(ordering), seed)
    depends = dependence(masked_network(ordering, inputs, outputs, hidden, seed), len(inputs))
    position = torch.tensor(ordering)
    assert torch.equal(depends, position[inputs] < position[outputs][:, None])


@given(n_columns=sizes, seed=seeds)
@examples(max_examples=20)
def test_hidden_units_read_any_column_but_the_last(n_columns, seed):
    (degrees,) = drawn_degrees(n_columns, [200], torch.Generator().manual_seed(seed))
    assert set(degrees.tolist()) == set(range(max(n_columns - 1, 1)))


@pytest.mark.parametrize("hidden", [(100,), (100, 100), ()], ids=str)
@pytest.mark.parametrize(
    "columns",
    ["real", "colour", "colour real", "flag colour count", "real flag colour count amount"],
)
def test_each_pass_of_made_puts_the_columns_of_a_mixed_table_in_one_order(columns, hidden):
    settings = Made(hidden=hidden, n_orderings=4)
    density, encoder = made(mixed_frame(columns), settings, seed=0)
    for index in range(density.n_passes):
        seen = column_dependence(density, encoder, index)
        order = seen.sum(1).argsort()
        assert torch.equal(seen[order][:, order], torch.ones_like(seen).tril(-1))


def test_small_hidden_layers_never_let_a_column_see_itself_through_another():
    density, encoder = made(mixed_frame(), Made(hidden=(3, 4)), seed=0)
    for index in range(density.n_passes):
        seen = column_dependence(density, encoder, index).float()
        assert not torch.linalg.matrix_power(seen, len(seen)).any()


def test_every_ordering_has_masks_of_its_own():
    density, encoder = made(mixed_frame(), Made(hidden=(100,), n_orderings=3), seed=1)
    assert density.n_passes == 3
    rank = [column_dependence(density, encoder, i).sum(1) for i in range(density.n_passes)]
    assert len({tuple(r.tolist()) for r in rank}) == 3
    assert len({density.masks(i)[0].numpy().tobytes() for i in range(len(rank))}) == len(rank)


def test_one_of_two_columns_sees_whether_the_other_is_missing():
    density, encoder = made(mixed_frame("real colour"), Made(hidden=(100,), n_orderings=4), seed=0)
    for index in range(density.n_passes):
        masks = density.masks(index)
        depends = dependence(lambda x, m=masks: density.network(x, m), encoder.n_inputs)
        of_real, of_colour = (density.joint.owner[column].unique() for column in depends[:, -2:].T)
        assert [of_real.tolist(), of_colour.tolist()] in ([[1], []], [[], [0]])


def test_a_value_changes_the_terms_of_its_own_and_of_later_columns_only():
    table = Table.of(mixed_frame())
    density, encoder = made(mixed_frame(), Made(hidden=(100,), n_orderings=4), seed=0)
    other = Table({**table.cells, "real": np.roll(table.cells["real"], 1)})
    before, after = (Rows.of(encoder.encode(t)) for t in (table, other))
    for index in range(density.n_passes):
        changed = (density.terms(before, index).value != density.terms(after, index).value).any(0)
        expected = column_dependence(density, encoder, index)[:, 0]
        expected[0] = True
        assert torch.equal(changed, expected)
