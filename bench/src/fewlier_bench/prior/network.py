"""The network: attention along the columns of a row, and along the rows of a column."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, final

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from fewlier_bench.prior.cells import N_FACTS, N_LEVELS, describe
from fewlier_bench.prior.distances import N_DISTANCES, distances

_CENTRES: Final = 16
_N_INPUTS: Final = N_FACTS + 2 * _CENTRES
_GROUP: Final = 8
_MAX_GROUPED: Final = 32


class Label(IntEnum):
    """What the network is told of a row."""

    NORMAL = 0
    ANOMALY = 1
    ASKED = 2
    UNLABELLED = 3


@final
class Block(nn.Module):
    """Attention over the columns of a row, then over the known rows of a column, then an MLP."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.columns_in, self.columns_out = _linear(width, 3 * width), _linear(width, width)
        self.rows_asked, self.rows_known = _linear(width, width), _linear(width, 2 * width)
        self.rows_out = _linear(width, width)
        self.up, self.down = _linear(width, 3 * width), _linear(3 * width, width)
        for last in (self.columns_out, self.rows_out, self.down):
            nn.init.zeros_(last.weight)

    def forward(self, x: Tensor, n_known: int, mask: Tensor | None) -> Tensor:
        """Pass (batch, rows, columns, width) on; the first `n_known` rows are the context.

        With a mask, several rows are one sequence, and it keeps them apart.
        """
        b, r, c, w = x.shape
        length = c if mask is None else mask.shape[-1]
        q, k, v = (
            self.columns_in(self.norms[0](x))
            .view(-1, length, 3, self.heads, w // self.heads)
            .unbind(2)
        )
        x = x + self.columns_out(_attend(q, k, v, mask).reshape(b, r, c, w))
        y = self.norms[1](x)
        # Columns stand beside heads, so that rows attend to rows without a copy.
        q = self.rows_asked(y).view(b, r, c * self.heads, -1)
        k, v = self.rows_known(y[:, :n_known]).chunk(2, -1)
        k, v = (t.reshape(b, n_known, c * self.heads, -1) for t in (k, v))
        x = x + self.rows_out(_attend(q, k, v).reshape(b, r, c, w))
        deeper: Tensor = self.down(gelu(self.up(self.norms[2](x))))
        return x + deeper


def _linear(inputs: int, outputs: int) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=False)


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attend over the second axis of (batch, items, heads, size)."""
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    return scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2)


def _row_mask(rows: int, columns: int, x: Tensor) -> Tensor | None:
    """Return what keeps rows apart that are one sequence, or None for a row in each.

    A GPU computes one long sequence sooner than many short ones.
    """
    together = _GROUP if columns <= _MAX_GROUPED else 1
    if not x.is_cuda or rows % together or together == 1:
        return None
    row = torch.arange(together * columns, device=x.device) // columns
    apart = torch.zeros(len(row), len(row), device=x.device, dtype=x.dtype)
    return apart.masked_fill(row[:, None] != row, -torch.inf)


@final
class Network(nn.Module):
    """Log odds that rows of a table are anomalies, given other rows of it.

    Each cell is a token, and so is each row as a whole, which is told of the row's distances. The
    answer is read from the token of the row.
    """

    def __init__(self, width: int = 128, depth: int = 6, heads: int = 4) -> None:
        super().__init__()
        self.cell = nn.Sequential(nn.Linear(_N_INPUTS, width), nn.GELU(), nn.Linear(width, width))
        self.row = nn.Linear(N_DISTANCES * _N_INPUTS, width)
        self.level = nn.Embedding(N_LEVELS + 1, width, padding_idx=0)
        self.label_of_row = nn.Embedding(len(Label), width)
        self.label_of_cell = nn.Embedding(len(Label), width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.head = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1)
        )

    @classmethod
    def of(cls, weights: Mapping[str, Tensor]) -> "Network":
        """Return the network of stored weights, in single precision."""
        depth = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("blocks."))
        network = cls(weights["row.weight"].shape[0], depth)
        network.load_state_dict({name: value.float() for name, value in weights.items()})
        return network.eval()

    def forward(
        self, values: Tensor, is_category: Tensor, labels: Tensor, n_normals: int, n_anomalies: int
    ) -> Tensor:
        """Return log odds of the rows asked about, (batch, asked).

        Parameters
        ----------
        values : tensor of shape (batch, rows, columns)
            Normal rows first, then labelled anomalies, then rows asked about; NaN is missing.
        is_category : tensor of shape (batch, columns)
            Whether a column holds codes of levels.
        labels : tensor of shape (batch, rows)
            A `Label` for each row.
        """
        cells = describe(values, is_category, n_normals)
        apart = distances(cells, n_normals, n_anomalies)
        no_category = torch.zeros_like(is_category[:, :1]).expand(-1, N_DISTANCES)
        dtype = self.row.weight.dtype
        whole = _widen(describe(apart, no_category, n_normals).facts).flatten(-2).to(dtype)
        x = self.cell(_widen(cells.facts).to(dtype)) + self.level(cells.levels)
        x = x + self.label_of_cell(labels)[:, :, None]
        row = self.row(whole) + self.label_of_row(labels)
        x = torch.cat([row[:, :, None], x], 2)
        mask = _row_mask(x.shape[0] * x.shape[1], x.shape[2], x)
        for block in self.blocks:
            x = block(x, n_normals + n_anomalies, mask)
        odds: Tensor = self.head(x[:, n_normals + n_anomalies :, 0])[..., 0]
        return odds.float()


def _widen(facts: Tensor) -> Tensor:
    """Add bumps along the normal score and the deviation, so that small differences count."""
    half = torch.linspace(-1, 1, _CENTRES, device=facts.device)
    bumps = [
        torch.exp(-(((facts[..., i, None] - reach * half) * (_CENTRES / (2 * reach))) ** 2))
        for i, reach in ((0, 3.5), (1, 8.0))
    ]
    scales = facts.new_tensor([0.5, 0.5, 1, 1, 1, 1, 1, 1])
    return torch.cat([facts * scales, *bumps], -1)
