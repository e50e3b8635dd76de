"""The parts that were learned from the labels, in the graph."""

from typing import final

import torch
from torch import Tensor, nn

from fewlier.density.rows import Rows
from fewlier.export.onnx.constants import exact
from fewlier.export.onnx.search import search_sorted
from fewlier.score.learned.bagged import Bagged
from fewlier.score.learned.nodes import Nodes
from fewlier.score.learned.steps import Steps
from fewlier.score.learned.supervised import LARGEST_FEATURE, LINEAR, Supervised


@final
class LearnedPart(nn.Module):
    """What `Supervised.score` computes."""

    def __init__(self, part: Supervised) -> None:
        super().__init__()
        self._part = part

    def forward(self, rows: Rows, neighbours: Tensor) -> Tensor:
        """Return the score, shape (n,), given that of the neighbours."""
        last = neighbours.float().unsqueeze(1)
        x = torch.cat([self._part.features.numbers.points(rows), last], 1)
        x = x.clamp(-LARGEST_FEATURE, LARGEST_FEATURE)
        z = (_sum(self._part.learned, x) - self._part.centre.sum()) / exact(self._part.spread)
        size = z.abs().clamp_min(LINEAR)
        return z * (LINEAR + (size - LINEAR).log1p()) / size


def _sum(learned: Bagged, x: Tensor) -> Tensor:
    if isinstance(learned, Nodes):
        return _sum_of_trees(learned, x)
    if isinstance(learned, Steps):
        return _sum_of_steps(learned, x)
    raise NotImplementedError(type(learned).__name__)


def _sum_of_trees(nodes: Nodes, x: Tensor) -> Tensor:
    """Let all rows go a level down at a time in all trees; a row at a leaf stays there."""
    here = nodes.order.roots.unsqueeze(0) + torch.zeros_like(x[:, :1], dtype=torch.int64)  # (n, t)
    start = nodes.value[nodes.order.roots].sum()
    for _ in nodes.order.n_deeper:
        is_above = x.gather(1, nodes.features[here]) > nodes.threshold[here]
        here = nodes.children[2 * here + is_above.long()]
    return nodes.value[here].sum(1) - start


def _sum_of_steps(steps: Steps, x: Tensor) -> Tensor:
    place = search_sorted(steps.thresholds, x.T)  # (f, n)
    return steps.total.gather(1, place).sum(0)
