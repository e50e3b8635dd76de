"""The density's part in the graph."""

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import final

import torch
from torch import Tensor, nn

from fewlier.density.networks import MaskedMLP
from fewlier.density.rows import Rows
from fewlier.density.terms import Substitutes, row_terms
from fewlier.export.onnx.constants import exact
from fewlier.score.ensemble import Ensemble, FittedMember


@final
class PlainMLP(nn.Module):
    """A `MaskedMLP` that multiplies matrices as they are: a graph has no tiles of rows."""

    def __init__(self, network: MaskedMLP) -> None:
        super().__init__()
        self.weights, self.biases = network.weights, network.biases

    def forward(self, x: Tensor, masks: Sequence[Tensor | None] | None = None) -> Tensor:
        """Map rows to outputs."""
        last = len(self.weights) - 1
        for layer, mask in enumerate(masks or [None] * len(self.weights)):
            weight = self.weights[layer]
            x = x @ (weight if mask is None else weight * mask) + self.biases[layer]
            x = x if layer == last else torch.relu(x)
        return x


@final
class DensityPart(nn.Module):
    """What `Ensemble.score` computes."""

    def __init__(self, ensemble: Ensemble) -> None:
        super().__init__()
        self._members = [_plain(member) for member in ensemble.members]
        self._ensemble = replace(ensemble, members=tuple(self._members))

    def forward(self, rows: Rows) -> Tensor:
        """Return the score less its baseline, shape (n,)."""
        found = []
        for member, weight in zip(self._members, self._ensemble.weights, strict=True):
            passes = [
                row_terms(member.density.terms(rows, index), rows, Substitutes(*own))
                for index, *own in zip(member.passes, *member.substitutes, strict=True)
            ]
            log_p = torch.stack(passes).double().sum(-1)  # (o, n)
            if self._ensemble.selection == "average":
                log_p = log_p.mean(0)
            else:
                log_p = torch.logsumexp(log_p, 0) - exact(math.log(len(passes)))
            centre = exact(float(member.centre.sum()))
            found.append((-log_p - centre) * exact(weight / member.scale))
        return torch.stack(found).sum(0)

    def stand_ins(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Return the likeliest and the least likely targets, as `Ensemble.stand_ins` does."""
        return self._ensemble.stand_ins(rows)


def _plain(member: FittedMember) -> FittedMember:
    density = copy.deepcopy(member.density)
    for module in list(density.modules()):
        for name, child in module.named_children():
            if isinstance(child, MaskedMLP):
                setattr(module, name, PlainMLP(child))
    return FittedMember(
        member.lam,
        member.fold,
        density,
        member.passes,
        member.substitutes,
        member.centre,
        member.scale,
    )
