"""Masked layers; a mask is a pure function of "which output may see which input"."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TypeAlias, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from fewlier.modelfile.state import require

Masks: TypeAlias = Sequence[Bool[Tensor, "*_ _ _"] | None]
"""One mask per layer, shape (in, out) or one for each network of a stack; None for no mask."""

MIN_WIDTH = 16
"""Columns that matrices are padded to.

With fewer than twelve, CPU kernels sum some rows in another order than others, so that the last
bits of a row's result depend on its place among the rows.
"""
TILE = 64
"""Rows that a product is computed for at a time, see `_tiles`."""


@contextmanager
def denormals_as_zero() -> Iterator[None]:
    """Let the CPU round numbers below 1e-38 to zero inside the block.

    Responsibilities of far components and Adam's squares of small gradients fall that low, and
    arithmetic on such numbers is a hundred times slower than on others. Processors keep this
    switch per thread: it holds in the calling thread and in those that torch starts inside the
    block, so that speed may depend on it, and no result.
    """
    before = not (torch.tensor([1e-40]) * 1).any()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(bool(before))


@contextmanager
def inference() -> Iterator[None]:
    """Compute without gradients and denormal numbers inside the block."""
    with torch.no_grad(), denormals_as_zero():
        yield


def empty_integers(*shape: int) -> Int[Tensor, "..."]:
    """Return an array of integers that are yet to be drawn."""
    return torch.empty(shape, dtype=torch.int64)


def lay_out_degrees(module: nn.Module, *sizes: int, hidden: Sequence[int]) -> None:
    """Give a module empty degrees for its hidden layers, shape (*sizes, width) each."""
    for layer, width in enumerate(hidden):
        module.register_buffer(f"degrees_{layer}", empty_integers(*sizes, width))


def draw_degrees(module: nn.Module, n_columns: int, generator: torch.Generator) -> None:
    """Draw for each hidden unit the last position in the ordering that it may read.

    A unit of degree m reads
    columns at positions <= m and feeds columns at positions > m, so the degrees run from 0 to
    D - 2; the last column feeds nobody. With one column there is nothing to read, and the masks
    below leave every unit unconnected.
    """
    for degrees in degrees_of(module):
        degrees.random_(0, max(n_columns - 1, 1), generator=generator)


def check_degrees(module: nn.Module, n_columns: int) -> None:
    """Raise `FormatError` for degrees that `draw_degrees` cannot have drawn."""
    for degrees in degrees_of(module):
        is_inside = bool(((degrees >= 0) & (degrees < max(n_columns - 1, 1))).all())
        require(is_inside, "hidden units have degrees out of range.")


def degrees_of(module: nn.Module) -> list[Int[Tensor, "*_ _"]]:
    """Return the buffers `degrees_...` of a module, one for each hidden layer."""
    buffers = module.named_buffers(recurse=False)
    return [value for name, value in buffers if name.startswith("degrees_")]


def check_orderings(positions: Int[Tensor, "o d"]) -> None:
    """Raise `FormatError` for positions of columns in orderings that are not permutations."""
    ordered = torch.arange(positions.shape[-1], device=positions.device)
    is_permutation = bool((positions.sort(-1).values == ordered).all())
    require(is_permutation, "an ordering of its columns is not a permutation.")


def autoregressive_masks(
    input_positions: Int[Tensor, "*_ i"],
    degrees: Sequence[Int[Tensor, "*_ _"]],
    output_positions: Int[Tensor, "*_ o"],
) -> list[Bool[Tensor, "*_ _ _"]]:
    """Return one mask per layer, shape (in, out), such that outputs read earlier columns only.

    Positions and degrees may have the leading axis of a stack of networks; masks then have it too.

    A hidden unit reads inputs, or units of the layer below, of position or degree at most its own;
    an output at position r reads units of degree strictly below r (Germain et al. 2015, Eq. 8-9).
    """
    below = [input_positions, *degrees]
    masks = [
        seen.unsqueeze(-1) <= above.unsqueeze(-2)
        for above, seen in zip(degrees, below[:-1], strict=True)
    ]
    return [*masks, below[-1].unsqueeze(-1) < output_positions.unsqueeze(-2)]


@final
class MaskedMLP(nn.Module):
    """A ReLU network whose masks come with each call, so that one set of weights serves them all.

    Without masks it is an ordinary network.

    Parameters
    ----------
    sizes : sequence of int
        Units per layer: inputs, hidden layers, outputs.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.weights = nn.ParameterList(
            nn.Parameter(torch.empty(below, above))  # (in, out): stacked products need no transpose
            for below, above in pairwise(sizes)
        )
        self.biases = nn.ParameterList(nn.Parameter(torch.empty(size)) for size in sizes[1:])

    @torch.no_grad()
    def reset(self, output_bias: Float[Tensor, " o"], generator: torch.Generator) -> None:
        """Draw the weights; the network starts near `output_bias`, whatever it reads."""
        for weight, bias in zip(self.weights, self.biases, strict=True):
            bound = len(weight) ** -0.5
            weight.uniform_(-bound, bound, generator=generator)
            bias.uniform_(-bound, bound, generator=generator)
        self.biases[-1].copy_(output_bias)

    def forward(
        self, x: Float[Tensor, "*m n i"], masks: Masks | None = None
    ) -> Float[Tensor, "*m n o"]:
        """Map rows to outputs, each weight multiplied by its mask where it has one.

        The weights, too, may have a leading axis m: a stack of networks, each with its own rows.
        In memory, the numbers of an output lie side by side, as `Rows.by_column` lays out targets.
        """
        masks = masks or [None] * len(self.weights)
        if torch.compiler.is_exporting():  # an ONNX graph has no tiles
            return self._map(x, masks, lambda x, weight, bias: x @ weight + bias)
        if self.weights[0].ndim > 2:
            return self._map(x, masks, _product_of_stack).mT.contiguous().mT
        found = self._map(_tiles(x).mT, masks, _product_of_tiles).transpose(0, 1).flatten(1)
        found = found[:, : x.shape[:-1].numel()]
        return found.reshape(len(found), *x.shape[:-1]).movedim(0, -1)

    def _map(
        self, x: Float[Tensor, "*_ _ _"], masks: Masks, product: Callable[..., Tensor]
    ) -> Float[Tensor, "*_ _ _"]:
        last = len(self.weights) - 1
        for layer, mask in enumerate(masks):
            weight = self.weights[layer]
            x = product(x, weight if mask is None else weight * mask, self.biases[layer])
            x = x if layer == last else torch.relu(x)
        return x


def _tiles(rows: Float[Tensor, "*n i"]) -> Float[Tensor, "t r i"]:
    """Cut rows into tiles of `TILE`, the last padded with zeros; on a GPU all are one tile.

    Kernels choose the order of their sums by the shapes they are given. In tiles of one shape a
    row's result is the same, bit for bit, among any number of rows. On a GPU, where tiles would
    take too long, whoever scores pads rows to one number.
    """
    rows = rows.reshape(-1, rows.shape[-1])
    if rows.is_cuda:
        return rows.unsqueeze(0)
    n_tiles = -(-len(rows) // TILE)
    padded = functional.pad(rows, (0, 0, 0, n_tiles * TILE - len(rows)))
    return padded.reshape(n_tiles, TILE, rows.shape[-1])


def _product_of_stack(
    x: Float[Tensor, "m n i"], weight: Float[Tensor, "m i o"], bias: Float[Tensor, "m o"]
) -> Float[Tensor, "m n o"]:
    """Return x @ weight + bias of each network."""
    return torch.baddbmm(bias.unsqueeze(-2), x, weight)


def _product_of_tiles(
    x: Float[Tensor, "t i r"], weight: Float[Tensor, "i o"], bias: Float[Tensor, " o"]
) -> Float[Tensor, "t o r"]:
    """Return the transpose of the same for tiles of rows, which are its last axis."""
    width = weight.shape[-1]
    if width < MIN_WIDTH:
        more = (0, MIN_WIDTH - width)
        weight, bias = functional.pad(weight, more), functional.pad(bias, more)
        return _product_of_tiles(x, weight, bias)[:, :width]
    return torch.baddbmm(bias.unsqueeze(-1), weight.mT.expand(len(x), -1, -1), x)
