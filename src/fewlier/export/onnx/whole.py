"""The whole score in the graph, and what it means."""

from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from fewlier.density.rows import Rows
from fewlier.export.onnx.columns import Encoding
from fewlier.export.onnx.operations import WrittenOut
from fewlier.score.model import FittedModel
from fewlier.score.part import exact


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
        self._odd_cells = model.scorer.odd_cells
        self._alone = torch.from_numpy(model.scorer.alone)
        self._normals = torch.from_numpy(model.calibration.normal_scores).unsqueeze(0)

    def forward(self, *columns: Tensor) -> Outputs:
        """Return what is said of rows, given column by column in the order of `inputs_of`."""
        with WrittenOut():
            score = self._raised(self._encoding(*columns)) + exact(self._model.scorer.baseline)
            n_below = torch.searchsorted(self._normals, score.unsqueeze(0)).squeeze(0)
        m = self._normals.shape[1]
        p_value = (1 + m - n_below).double() / (m + 1)
        return Outputs(score, p_value, score > exact(self._model.calibration.threshold))

    def _raised(self, rows: Rows) -> Tensor:
        """Return the scores, those of rows with odd cells raised as `Scorer.score` does."""
        n = rows.targets.shape[0]
        lines, cells = self._odd_cells.groups(self._odd_cells.mark(rows))
        # And the first row, which changes nothing: onnxruntime takes no maximum of no rows.
        lines = torch.cat([torch.zeros(1, dtype=torch.int64), lines])
        cells = torch.cat([torch.zeros_like(rows.observed[:1]), cells])
        some = Rows(*(part[lines] for part in rows[:4]))
        others = [*self._odd_cells.versions(some, cells, *self._model.ensemble.stand_ins(some))]
        # All at once: a second time, the score would be a second graph.
        together = zip(*(part[:4] for part in (rows, *others)), strict=True)
        scores = self._model.scorer.sum_of_parts(Rows(*map(torch.cat, together))).sum(1)
        least = torch.where(some.impossible, self._alone, -torch.inf).amax(1)
        found = torch.stack([least, *scores[n:].unflatten(0, (len(others), -1))])
        return scores[:n].scatter_reduce(0, lines, found.amax(0), "amax")
