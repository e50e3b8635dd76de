"""Tasks: some rows of a table are known, others are to be ranked.

Everything that makes a task differ from a clean table is here: columns are bent, rounded, binned
and made to say nothing; cells are missing; anomalies hide among the normal rows; labels are wrong;
rows are copied; and half of the labelled tasks ask about kinds that the labels do not show.
"""

from dataclasses import dataclass
from typing import Final, final

import torch
from torch import Tensor

from fewlier_bench.prior.anomalies import make_kind, regions
from fewlier_bench.prior.network import Label
from fewlier_bench.prior.tables import Rows

_MAX_HIDDEN: Final = 0.1
_N_LEVELS: Final = (2, 60)


@final
@dataclass(frozen=True)
class Size:
    """How many rows of each sort a task has."""

    n_normals: int
    n_labels: int
    n_asked: int  # normal ones, and as many anomalies

    @property
    def n_hidden(self) -> int:
        """Return how many anomalies may hide among the normal rows."""
        return int(_MAX_HIDDEN * self.n_normals)

    @property
    def n_anomalies(self) -> int:
        """Return how many anomalies of a kind a task needs at most."""
        return self.n_labels + self.n_asked + self.n_hidden

    @property
    def n_rows(self) -> int:
        """Return how many normal rows a task needs at most, with two regions taken away."""
        return self.n_normals + self.n_asked + 2 * self.n_anomalies


@final
@dataclass(frozen=True, eq=False)
class Tasks:
    """Tasks of equal size. Rows: normal, labelled anomalies, asked normals, asked anomalies."""

    values: Tensor  # (b, rows, columns)
    is_category: Tensor  # (b, columns)
    labels: Tensor  # (b, rows)
    size: Size


def make_tasks(rows: Rows, other: Rows, size: Size) -> Tasks:
    """Make a task of each table; columns of `other` take the place of some, and say nothing."""
    normals, anomalies, is_category = _recode(_say_nothing(rows, other), rows.is_code)
    b, n, _ = normals.shape
    device = normals.device
    inside = torch.stack([regions(normals, is_category), regions(normals, is_category)])
    groups = inside.topk(size.n_anomalies, dim=-1).indices  # (2, b, anomalies)
    real = _split(anomalies, rows.n_anomalies, size)
    enough = rows.n_anomalies >= size.n_labels + 8
    which = torch.rand(2, b, device=device)  # below .4 real, below .6 a region, else made
    which = torch.where((which < 0.4) & ~enough, which + 0.4, which)
    kinds = []
    taken = torch.zeros(b, n, dtype=torch.bool, device=device)
    for i in (0, 1):
        made = make_kind(normals, is_category, size.n_anomalies)
        group = _rows(normals, _shuffle(groups[i]))
        is_group = (which[i] >= 0.4) & (which[i] < 0.6)
        kind = torch.where(is_group[:, None, None], group, made)
        kinds.append(torch.where((which[i] < 0.4)[:, None, None], real, kind))
        taken |= is_group[:, None] & torch.zeros_like(taken).scatter(1, groups[i], True)
    order = (torch.rand(b, n, device=device) + taken).argsort(1)
    normals = _rows(normals, order)[:, : size.n_asked + size.n_normals]
    is_unseen = torch.rand(b, 1, 1, device=device) < 0.5
    return _assemble(
        normals, kinds[0], torch.where(is_unseen, kinds[1], kinds[0]), is_category, size
    )


def _assemble(
    normals: Tensor, shown: Tensor, asked: Tensor, is_category: Tensor, size: Size
) -> Tasks:
    """Put the rows of tasks together, with hidden anomalies, copies, wrong labels and gaps."""
    b = len(normals)
    device, k, q, m = normals.device, size.n_labels, size.n_asked, size.n_normals
    tested, known = normals[:, :q], normals[:, q:].clone()
    labelled, hidden, asked = shown[:, :k], asked[:, k + q :], asked[:, k : k + q]
    hides = torch.rand(b, 1, device=device) < 0.35
    share = torch.rand(b, 1, device=device) * hides
    is_hidden = torch.arange(size.n_hidden, device=device) < share * size.n_hidden
    known[:, : size.n_hidden] = torch.where(is_hidden[..., None], hidden, known[:, : size.n_hidden])
    copied = torch.rand(b, m, device=device) < 0.3 * (torch.rand(b, 1, device=device) < 0.1)
    source = torch.randint(m, (b, m), device=device)
    known = torch.where(copied[..., None], _rows(known, source), known)
    mistaken = torch.rand(b, k, device=device) < 0.2 * (torch.rand(b, 1, device=device) < 0.15)
    labelled = torch.where(mistaken[..., None], known[:, m - k :], labelled) if k else labelled
    values = _leave_out(torch.cat([known, labelled, tested, asked], 1))
    labels = torch.full((b, values.shape[1]), Label.ASKED, device=device)
    said = torch.rand(b, 1, device=device) < torch.where(hides, 0.7, 0.1)
    labels[:, :m] = torch.where(said, Label.UNLABELLED, Label.NORMAL)
    labels[:, m : m + k] = Label.ANOMALY
    return Tasks(values, is_category, labels, size)


def _say_nothing(rows: Rows, other: Rows) -> tuple[Tensor, Tensor]:
    """Put columns of other tables in the place of some: for most tasks of none or few."""
    b, n, d = rows.normals.shape
    share = torch.rand(b, 1, 1, device=rows.normals.device)
    share = torch.where(torch.rand_like(share) < 0.35, share * 0.8, 0.0)
    taken = torch.rand(b, 1, d, device=share.device) < share
    n_odd = rows.anomalies.shape[1]
    drawn = torch.randint(n, (b, n_odd), device=share.device)
    normals = torch.where(taken, other.normals[:, :n], rows.normals)
    return normals, torch.where(taken, _rows(other.normals, drawn), rows.anomalies)


def _recode(rows: tuple[Tensor, Tensor], is_code: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Bend, round and bin columns; return normals, anomalies, and which are categories."""
    normals, anomalies = rows
    b, n, d = normals.shape
    device = normals.device
    middle = normals.nanmedian(1, keepdim=True).values.nan_to_num()
    spread = (normals - middle).abs().nanmean(1, keepdim=True).nan_to_num().clamp_min(1e-9)
    values = (torch.cat([normals, anomalies], 1) - middle) / spread
    values = values.clamp(-1e4, 1e4)
    form = torch.rand(b, 1, d, device=device)
    power = torch.exp(torch.randn(b, 1, d, device=device) * 0.4)
    sign = torch.where(torch.rand(b, 1, d, device=device) < 0.5, -1.0, 1.0)
    values = torch.where(form < 0.35, sign * values.sign() * values.abs() ** power, values)
    grid = torch.exp(torch.randn(b, 1, d, device=device) * 1.2 + 1)
    values = torch.where((form > 0.6) & (form < 0.75), (values * grid).round(), values)
    codes = is_code[:, None] & (form < 0.3)
    binned = form > 0.87
    values = torch.where(binned & ~codes, _bins(values, n), values)
    values = torch.where(torch.rand(b, 1, d, device=device) < 0.015, 0.0, values)  # constant
    is_category = (codes | binned)[:, 0] & (torch.rand(b, 1, device=device) < 0.8)
    return values[:, :n], values[:, n:], is_category


def _bins(values: Tensor, n_normals: int) -> Tensor:
    """Cut columns at random cells of normal rows; number the bins in a random order."""
    b, _, d = values.shape
    low, high = _N_LEVELS
    most = torch.exp(torch.rand(b, 1, d, device=values.device) * 3.4).add(1).clamp(low, high)
    at = torch.randint(n_normals, (b, high - 1, d), device=values.device)
    cuts = values.gather(1, at)
    number = torch.arange(high - 1, device=values.device)[:, None]
    cuts = torch.where(number < most - 1, cuts, torch.inf).sort(1).values
    level = torch.searchsorted(
        cuts.transpose(1, 2).contiguous(), values.transpose(1, 2).contiguous()
    ).transpose(1, 2)
    factor = torch.randint(1, high, (b, 1, d), device=values.device)  # 61 is prime
    made = (level * factor % 61).to(values.dtype)
    return torch.where(values.isnan(), torch.nan, made)


def _leave_out(values: Tensor) -> Tensor:
    """Leave cells out at random, in some columns of some tasks."""
    b, _, d = values.shape
    has = torch.rand(b, 1, 1, device=values.device) < 0.25
    rate = torch.rand(b, 1, d, device=values.device) ** 3 * 0.8
    rate = rate * (torch.rand(b, 1, d, device=values.device) < 0.5) * has
    return torch.where(torch.rand_like(values) < rate, torch.nan, values)


def _split(anomalies: Tensor, n_anomalies: Tensor, size: Size) -> Tensor:
    """Order real anomalies so that none is both labelled and asked about, (b, needed, d).

    In half of the tasks they lie in order along some direction, so that those asked about are
    unlike those labelled.
    """
    b, n, d = anomalies.shape
    device = anomalies.device
    scaled = anomalies.nan_to_num().clamp(-5, 5)
    along = (scaled * torch.randn(b, 1, d, device=device)).sum(-1)
    along = torch.where(torch.rand(b, 1, device=device) < 0.5, along, torch.rand_like(along))
    differ = torch.arange(n, device=device) < n_anomalies[:, None]
    order = torch.where(differ, along, torch.inf).argsort(1)
    place = torch.arange(size.n_anomalies, device=device).expand(b, -1)
    rest = (n_anomalies[:, None] - size.n_labels).clamp_min(1)
    from_the_end = n_anomalies[:, None] - 1 - (place - size.n_labels) % rest
    place = torch.where(place < size.n_labels, place, from_the_end)
    return _rows(anomalies, order.gather(1, place.clamp(0, n - 1)))


def _shuffle(rows: Tensor) -> Tensor:
    return rows.gather(1, torch.rand(rows.shape, device=rows.device).argsort(1))


def _rows(values: Tensor, rows: Tensor) -> Tensor:
    return values.gather(1, rows[..., None].expand(-1, -1, values.shape[-1]))
