import pytest
import torch
from torch import nn

from fewlier.density.networks import TILE, MaskedMLP


def network(*sizes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mlp = MaskedMLP(sizes)
    mlp.reset(torch.randn(sizes[-1], generator=generator), generator)
    return mlp


@pytest.mark.parametrize("width", range(1, 20))
@torch.no_grad()
def test_a_row_has_the_same_output_bit_for_bit_wherever_it_stands(width):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(1024, 37, generator=generator)
    order = torch.randperm(1024, generator=generator)
    mlp = network(37, width, 50, width)
    assert torch.equal(mlp(x)[order], mlp(x[order]))


@torch.no_grad()
def test_without_masks_it_is_an_ordinary_network():
    mlp, layers = network(5, 20, 3), [nn.Linear(5, 20), nn.Linear(20, 3)]
    for layer, weight, bias in zip(layers, mlp.weights, mlp.biases, strict=True):
        layer.weight.copy_(weight.T)
        layer.bias.copy_(bias)
    x = torch.randn(7, 5, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(mlp(x), layers[1](torch.relu(layers[0](x))))


@torch.no_grad()
def test_a_layer_may_have_a_mask_and_another_none():
    mlp, x = network(4, 30, 2), torch.ones(3, 4)
    seen = torch.tensor([True, False]).expand(30, 2)
    found = mlp(x, [None, seen])
    torch.testing.assert_close(found[:, 0], mlp(x)[:, 0])
    torch.testing.assert_close(found[:, 1], mlp.biases[-1][1].expand(3))


@pytest.mark.parametrize("shape", [(7, 500), (500, 37), (40, 16), (3, 300)])
@torch.no_grad()
def test_a_row_has_the_same_product_among_any_number_of_tiles(shape):
    rows, mlp = torch.randn(16 * TILE, shape[0]), network(*shape)
    whole = mlp(rows)
    torch.testing.assert_close(whole, rows @ mlp.weights[0] + mlp.biases[0])
    for start in range(0, len(rows), 3 * TILE):
        some = slice(start, start + TILE)
        assert torch.equal(mlp(rows[some]), whole[some])
