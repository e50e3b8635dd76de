"""Made-up tables: clusters, networks of causes, and trees, with marginals of many forms.

Each makes normals and anomalies together: anomalies come from the same process with one of its
mechanisms changed, which no change of finished rows can imitate.
"""

import math

import torch
from torch import Tensor

from fewlier_bench.prior.tables import Rows

_N_ANOMALIES = 160
_MAX_CLUSTERS = 8


def make_up(n_tables: int, n_rows: int, n_columns: int, device: torch.device) -> Rows:
    """Make up tables, a third of each kind."""
    sizes = [n_tables // 3 + (i < n_tables % 3) for i in range(3)]
    n, makers = n_rows + _N_ANOMALIES, (_clusters, _causes, _trees)
    tables = [
        make(size, n, n_rows, n_columns, device)
        for make, size in zip(makers, sizes, strict=True)
        if size
    ]
    values = _marginals(torch.cat(tables))
    order = torch.rand(n_tables, n_columns, device=device).argsort(1)[:, None].expand(-1, n, -1)
    values = values.gather(2, order)
    return Rows(
        values[:, :n_rows],
        values[:, n_rows:],
        torch.full((n_tables,), _N_ANOMALIES, device=device),
        torch.zeros(n_tables, n_columns, dtype=torch.bool, device=device),
    )


def _clusters(b: int, n: int, n_normals: int, d: int, device: torch.device) -> Tensor:
    """Rows around a few centres, on planes of fewer dimensions; anomalies around other centres."""
    weights = torch.rand(b, _MAX_CLUSTERS, device=device) ** 3 + 1e-3
    weights[:, 0] += 0.3
    apart = torch.rand(b, 1, 1, device=device) * 3
    centres = torch.randn(b, 2 * _MAX_CLUSTERS, d, device=device) * apart
    share = torch.rand(b, 1, d, device=device) < torch.rand(b, 1, 1, device=device) * 0.8 + 0.2
    centres[:, _MAX_CLUSTERS:] = torch.where(  # the others differ in some columns alone
        share, centres[:, _MAX_CLUSTERS:], centres[:, :_MAX_CLUSTERS]
    )
    which = weights.multinomial(n, replacement=True)
    which[:, n_normals:] = _MAX_CLUSTERS + which[:, n_normals:] % (1 + which[:, :1] % 3)
    rank = max(1, int(d * float(torch.rand(()) * 0.9 + 0.1)))
    planes = torch.randn(b, 2 * _MAX_CLUSTERS, rank, d, device=device) / math.sqrt(rank)
    planes = torch.where(torch.rand(b, 1, 1, 1, device=device) < 0.5, planes[:, :1], planes)
    z = torch.randn(b, n, rank, device=device)
    rows = torch.zeros(b, n, d, device=device)
    for k in range(2 * _MAX_CLUSTERS):
        inside = (which == k)[..., None]
        rows = torch.where(inside, centres[:, k, None] + z @ planes[:, k], rows)
    noise = torch.rand(b, 1, d, device=device) ** 2
    return rows + noise * torch.randn(b, n, d, device=device)


def _causes(b: int, n: int, n_normals: int, d: int, device: torch.device) -> Tensor:
    """Rows from a random network of causes; for anomalies some of its weights are others."""
    width, depth = max(8, d), 3
    z = torch.randn(b, n, width, device=device)
    roots = torch.rand(b, 1, width, device=device) < torch.rand(b, 1, 1, device=device)
    shift = torch.randn(b, 1, width, device=device) * (torch.rand(b, 1, width, device=device) < 0.2)
    changed = torch.randint(depth + 1, (b,), device=device)
    z[:, n_normals:] += torch.where((changed == depth)[:, None, None], 2 * shift, 0.0)
    layers = []
    for level in range(depth):
        dense = torch.rand(b, 1, 1, device=device) ** 2 + 2 / width
        W = torch.randn(b, width, width, device=device)
        W *= torch.rand(b, width, width, device=device) < dense
        other = torch.where(torch.rand_like(W) < 0.3, torch.randn_like(W), W)
        other = torch.where((changed == level)[:, None, None], other, W)
        x = torch.cat([z[:, :n_normals] @ W, z[:, n_normals:] @ other], 1)
        x = x / x[:, :n_normals].std(1, keepdim=True).clamp_min(1e-3)
        x = _bend(x + torch.randn(b, 1, width, device=device), (b, 1, width))
        noise = torch.rand(b, 1, width, device=device) ** 3
        x = x + noise * torch.randn(b, n, width, device=device)
        z = torch.where(roots & (torch.rand(b, 1, width, device=device) < 0.3), z, x)
        layers.append(z)
    nodes = torch.cat(layers, -1)
    chosen = torch.rand(b, nodes.shape[-1], device=device).argsort(1)[:, :d]
    return nodes.gather(2, chosen[:, None].expand(-1, n, -1))


def _bend(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Pass each node through one of several functions."""
    which = torch.randint(6, shape, device=x.device)
    forms = [x, x.tanh(), x.relu(), x.sin() * 2, x.abs(), x**2 / 2]
    result = forms[0]
    for i, form in enumerate(forms[1:], start=1):
        result = torch.where(which == i, form, result)
    return result


def _trees(b: int, n: int, n_normals: int, d: int, device: torch.device) -> Tensor:
    """Columns that follow from the sides on which three others lie; anomalies break some of it."""
    n_roots = max(2, d // 3)
    rows = torch.randn(b, n, n_roots, device=device)
    broken = torch.rand(b, 1, d, device=device) < torch.rand(b, 1, 1, device=device) * 0.6 + 0.2
    while rows.shape[-1] < d:
        new = min(d - rows.shape[-1], max(1, (d - n_roots + 1) // 2))
        have = rows.shape[-1]
        parents = torch.randint(have, (b, new, 3), device=device)
        cuts = torch.randn(b, 1, new, 3, device=device) * 0.6
        of = rows.gather(2, parents.flatten(1)[:, None].expand(-1, n, -1)).unflatten(-1, (new, 3))
        leaf = ((of > cuts) * torch.tensor([1, 2, 4], device=device)).sum(-1)
        another = torch.randint(8, (b, n, new), device=device)
        wrong = broken[..., have : have + new].expand(-1, n, -1).clone()
        wrong[:, :n_normals] = False
        leaf = torch.where(wrong, another, leaf)
        values = torch.randn(b, new, 8, device=device) * 1.5
        mean = values.gather(2, leaf.transpose(1, 2)).transpose(1, 2)
        noise = torch.rand(b, 1, new, device=device) ** 2
        rows = torch.cat([rows, mean + noise * torch.randn(b, n, new, device=device)], -1)
    return rows[..., :d]


def _marginals(x: Tensor) -> Tensor:
    """Give each column a form: as it is, skewed, heavy, bounded, with a point mass."""
    b, _, d = x.shape
    x = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True).clamp_min(1e-3)
    x = x.clamp(-30, 30)
    which = torch.randint(9, (b, 1, d), device=x.device)
    power = torch.rand(b, 1, d, device=x.device) * 1.2 + 0.3
    least = torch.randn(b, 1, d, device=x.device) * 0.7
    result = torch.where(which == 1, (x * power).clamp_max(15).exp(), x)
    result = torch.where(which == 2, x.sign() * x.abs() ** (1 + power), result)
    result = torch.where(which == 3, torch.sigmoid(x * 1.5 * power), result)
    result = torch.where(which == 4, x.clamp_min(least), result)
    return torch.where(which == 5, (x * power).clamp_max(8).expm1().clamp_min(0), result)
