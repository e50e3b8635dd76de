"""Kinds of anomalies that are made from the normal rows of a table.

A kind is drawn once for each table: what is done, to which columns, how strongly. All rows of the
kind share it, as frauds or faults of one kind do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

UNSEEN_LEVEL = -54_321.0
"""The code of a level that no normal row has."""


@final
@dataclass(frozen=True, eq=False)
class _Draw:
    """What kinds are made of: rows to change, cells of others, and how columns are spread."""

    rows: Tensor  # (b, n, d) normal rows to begin from
    second: Tensor  # (b, n, d) other normal rows
    cells: Tensor  # (b, n, d) cells of other rows, each drawn for itself
    one: Tensor  # (b, 1, d) one normal row
    middle: Tensor  # (b, 1, d)
    spread: Tensor  # (b, 1, d)
    low: Tensor  # (b, 1, d)
    high: Tensor  # (b, 1, d)
    some: Tensor  # (b, 1, d) the columns that the kind changes
    strength: Tensor  # (b, 1, 1)


def make_kind(normals: Tensor, is_category: Tensor, n: int) -> Tensor:
    """Make `n` anomalies of one kind for each table, (batch, n, columns).

    Parameters
    ----------
    normals : tensor of shape (batch, rows, columns)
        Rows to begin from, in a random order; NaN is missing.
    is_category : tensor of shape (batch, columns)
        Columns whose cells can only be changed for other levels.
    """
    draw = _draw(normals, n)
    b, _, d = normals.shape
    which = torch.randint(len(_KINDS), (b, 1, 1), device=normals.device)
    made = draw.rows
    for number, kind in enumerate(_KINDS):
        made = torch.where(which == number, kind(draw), made)
    changed = (made != draw.rows) & ~made.isnan()
    unseen = torch.rand(b, 1, d, device=normals.device) < 0.25
    level = torch.where(unseen, torch.full_like(made, UNSEEN_LEVEL), draw.cells)
    one = torch.rand(b, 1, 1, device=normals.device) < 0.3
    level = torch.where(one & ~unseen, draw.one.expand_as(level), level)
    return torch.where(changed & is_category[:, None], level, made)


def _draw(normals: Tensor, n: int) -> _Draw:
    b, n_rows, d = normals.shape
    device = normals.device

    def rows() -> Tensor:
        which = torch.randint(n_rows, (b, n, 1), device=device).expand(-1, -1, d)
        return normals.gather(1, which)

    filled = normals.nan_to_num(nan=0.0)
    middle = normals.nanmedian(1, keepdim=True).values.nan_to_num()
    some = torch.rand(b, 1, d, device=device) < torch.rand(b, 1, 1, device=device) ** 2
    some.scatter_(2, torch.randint(d, (b, 1, 1), device=device), True)
    return _Draw(
        rows(),
        rows(),
        normals.gather(1, torch.randint(n_rows, (b, n, d), device=device)),
        rows()[:, :1],
        middle,
        (filled - middle).abs().clamp_max(1e30).mean(1, keepdim=True).clamp_min(1e-6),
        filled.amin(1, keepdim=True),
        filled.amax(1, keepdim=True),
        some,
        torch.exp(torch.randn(b, 1, 1, device=device) * 0.8),
    )


def _cells_of_others(draw: _Draw) -> Tensor:
    few = torch.rand_like(draw.rows) < 0.7
    return torch.where(draw.some & few, draw.cells, draw.rows)


def _all_cells_of_others(draw: _Draw) -> Tensor:
    return draw.cells


def _blown_up(draw: _Draw) -> Tensor:
    noise = torch.randn_like(draw.rows) * draw.spread * draw.strength * 2
    return torch.where(draw.some, draw.rows + noise, draw.rows)


def _stretched(draw: _Draw) -> Tensor:
    far = draw.middle + (draw.rows - draw.middle) * (1 + 2 * draw.strength)
    return torch.where(draw.some, far, draw.rows)


def _shifted(draw: _Draw) -> Tensor:
    way = torch.randn_like(draw.spread) * draw.spread * draw.strength * 1.5
    return torch.where(draw.some, draw.rows + way, draw.rows)


def _cluster(draw: _Draw) -> Tensor:
    way = torch.randn_like(draw.spread) * draw.spread * draw.strength
    width = 0.5 * torch.rand_like(draw.strength)
    near = draw.one + way + width * (draw.rows - draw.middle)
    return torch.where(draw.some, near, draw.rows)


def _pushed_out(draw: _Draw) -> Tensor:
    width = (draw.high - draw.low) * draw.strength * torch.rand_like(draw.rows)
    way = torch.rand_like(draw.spread) < 0.5
    return torch.where(draw.some, torch.where(way, draw.high + width, draw.low - width), draw.rows)


def _anywhere(draw: _Draw) -> Tensor:
    cells = draw.low + torch.rand_like(draw.rows) * (draw.high - draw.low)
    return torch.where(draw.some, cells, draw.rows)


def _between(draw: _Draw) -> Tensor:
    share = 0.3 + 0.4 * torch.rand_like(draw.rows[..., :1])
    return share * draw.rows + (1 - share) * draw.second


def _constant(draw: _Draw) -> Tensor:
    return torch.where(draw.some, draw.one, draw.rows)


def _missing(draw: _Draw) -> Tensor:
    often = torch.rand_like(draw.rows) < 0.8
    return torch.where(draw.some & often, torch.nan, draw.rows)


def _wrong_unit(draw: _Draw) -> Tensor:
    power = torch.where(torch.rand_like(draw.spread) < 0.5, 10.0, 0.1)
    power = torch.where(torch.rand_like(draw.strength) < 0.2, -1.0, power)
    return torch.where(draw.some, draw.rows * power, draw.rows)


_KINDS: tuple[Callable[[_Draw], Tensor], ...] = (
    _cells_of_others,
    _cells_of_others,
    _all_cells_of_others,
    _blown_up,
    _stretched,
    _shifted,
    _cluster,
    _pushed_out,
    _anywhere,
    _between,
    _constant,
    _missing,
    _wrong_unit,
)


def regions(normals: Tensor, is_category: Tensor) -> Tensor:
    """Return how far each row lies in a random region of its table, (batch, rows).

    A region is around a row, on one side of a plane, or in the corner of two columns, in some
    columns alone. Its rows can be taken away from the normal ones, to be a rare group.
    """
    b, n, d = normals.shape
    ranks = normals.nan_to_num(nan=0.0).argsort(1).argsort(1) / n - 0.5
    ranks = torch.where(is_category[:, None], (normals.nan_to_num() * 0.618) % 1 - 0.5, ranks)
    some = torch.rand(b, 1, d, device=normals.device) < torch.rand(b, 1, 1, device=normals.device)
    some.scatter_(2, torch.randint(d, (b, 1, 1), device=normals.device), True)
    way = torch.randn(b, 1, d, device=normals.device)
    around = -(((ranks - ranks[:, :1]) ** 2) * some).sum(-1)
    plane = (ranks * way * some).sum(-1)
    pair = torch.rand(b, d, device=normals.device).argsort(1)[:, None, :2].expand(-1, n, -1)
    corner = (ranks * way.sign()).gather(2, pair).amin(-1)
    which = torch.randint(3, (b, 1), device=normals.device)
    return torch.where(which == 0, around, torch.where(which == 1, plane, corner))
