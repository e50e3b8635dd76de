"""A further density, as a contributor would write it: all columns independent of each other."""

from typing import ClassVar, final

import torch

from fewlier.density.base import Density, DensitySettings
from fewlier.modelfile.state import require


@final
class Independent(DensitySettings):
    """p(x) is the mean over draws of a product of fixed distributions, one for each column."""

    def __init__(self, *, n_draws=2, n_components=2):
        self.n_draws = n_draws
        self.n_components = n_components

    def lay_out(self, joint):
        return IndependentDensity(self, joint)


@final
class IndependentDensity(Density):
    """The parameters of the conditionals are the same for every row; draws shift them a little."""

    is_probabilistic: ClassVar[bool] = True
    unit: ClassVar[str] = "nats"
    remainder: ClassVar[str] = "(draws)"
    meaning: ClassVar[str] = "A column contributes what its value costs; the remainder is small."

    def __init__(self, settings, joint):
        super().__init__(settings, joint)
        self.n_passes = settings.n_draws
        self.offset = torch.nn.Parameter(torch.empty(len(joint.owner)))
        self.register_buffer("shift", torch.empty(self.n_passes))

    def draw(self, generator):
        self.shift.uniform_(-0.01, 0.01, generator=generator)

    def check_structure(self):
        require(bool((self.shift.abs() <= 0.01).all()), "its shifts are too large.")

    @torch.no_grad()
    def reset(self, generator):
        self.offset.copy_(self.joint.initial())
        self.offset += 0.01 * torch.rand(self.offset.shape, generator=generator)

    def phi(self, rows, index):
        phi = (self.offset + self.shift[..., index, None]).unsqueeze(-2)
        return phi.expand(*rows.inputs.shape[:-1], -1)
