"""The whole score in the graph, and what it means."""

from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from fewlier.graph.columns import Encoding
from fewlier.graph.constants import exact
from fewlier.graph.density import DensityPart
from fewlier.graph.learned import LearnedPart
from fewlier.graph.nearest import NeighboursPart
from fewlier.graph.search import search_sorted
from fewlier.score.model import FittedModel
from fewlier.score.neighbours import Neighbours
from fewlier.score.supervised import Supervised


class Outputs(NamedTuple):
    """What the graph says of n rows, each of shape (n,)."""

    anomaly_score: Tensor
    p_value: Tensor
    is_anomaly: Tensor


@final
class Whole(nn.Module):
    """s(x) = sum of share * part(x), its p-value, and whether it is above the threshold."""

    def __init__(self, model: FittedModel) -> None:
        super().__init__()
        self._model = model
        self._encoding = Encoding(model.encoder)
        self._density = DensityPart(model.ensemble)
        self._normals = torch.from_numpy(model.calibration.normal_scores).unsqueeze(0)

    def forward(self, *columns: Tensor) -> Outputs:
        """Return what is said of rows, given column by column in the order of `inputs_of`."""
        rows = self._encoding(*columns)
        (share, _), *others = self._model.scorer.addends
        score = exact(self._model.scorer.baseline) + exact(share) * self._density(rows)
        neighbours = torch.zeros_like(score)
        for share, part in others:
            if isinstance(part, Neighbours):
                found = neighbours = NeighboursPart(part)(rows)
            elif isinstance(part, Supervised):
                found = LearnedPart(part)(rows, neighbours)
            else:
                raise NotImplementedError(part.name)
            score = score + exact(share) * found
        m = self._normals.shape[1]
        n_below = search_sorted(self._normals, score.unsqueeze(0)).squeeze(0)
        p_value = (1 + m - n_below).double() / (m + 1)
        return Outputs(score, p_value, score > exact(self._model.calibration.threshold))
