"""Adam (Kingma & Ba 2015), by torch's fused kernel."""

from collections.abc import Iterable
from typing import final

import torch
from torch import Tensor
from torch.optim.adam import adam

_BETAS, _EPS = (0.9, 0.999), 1e-8


@final
class Adam:
    """Steps of some parameters, all of a stack of members, with Adam's usual constants.

    `torch.optim.Adam` gives the same numbers, and loads torch's compiler: 800 modules and one and a
    half seconds in every process that trains, such as each worker of a cross-validation.
    """

    def __init__(self, parameters: Iterable[Tensor], learning_rate: float) -> None:
        self.parameters = list(parameters)
        self.learning_rate = learning_rate
        self._means = [torch.zeros_like(p) for p in self.parameters]
        self._squares = [torch.zeros_like(p) for p in self.parameters]
        self._steps = [torch.zeros((), device=p.device) for p in self.parameters]

    @torch.no_grad()
    def step(self) -> None:
        """Move the parameters by their gradients, and forget these."""
        state = (self.parameters, self._means, self._squares, self._steps)
        moved = [line for line in zip(*state, strict=True) if line[0].grad is not None]
        if not moved:
            return
        parameters, means, squares, steps = map(list, zip(*moved, strict=True))
        adam(
            parameters,
            [p.grad for p in parameters],
            means,
            squares,
            [],
            steps,
            fused=True,
            amsgrad=False,
            beta1=_BETAS[0],
            beta2=_BETAS[1],
            lr=self.learning_rate,
            weight_decay=0.0,
            eps=_EPS,
            maximize=False,
        )
        for parameter in parameters:
            parameter.grad = None
