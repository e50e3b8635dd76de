"""Normalizing flow: splines or affine maps from zuko on real columns, conditionals on the others.

zuko is an optional package (``pip install 'fewlier[flow]'``), imported when a flow is built.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, cast, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from fewlier.density.base import MAX_LAYERS, Density, DensitySettings
from fewlier.density.conditionals.gaussian_mixture import GaussianMixture
from fewlier.density.joint import SHARES, CellPlaces, Expected, Joint
from fewlier.density.missing_cells import Terms
from fewlier.density.networks import (
    MaskedMLP,
    autoregressive_masks,
    check_degrees,
    check_orderings,
    degrees_of,
    draw_degrees,
    empty_integers,
    lay_out_degrees,
)
from fewlier.density.rows import Rows
from fewlier.errors import UserError, parameter

# Splines map [-5, 5] and keep values beyond it. The range of the training values is mapped to
# [-3, 3], about as wide as a standard normal.
HALF_RANGE, SPLINE_BOUND = 3.0, 5.0
N_BINS = 8
# All transformations together may stretch a column about this much, so that it is at most as sharp
# as a mixture's narrowest Gaussian: repeated values would otherwise reach any likelihood.
MAX_STRETCH = 150.0
_N_PARAMETERS = {"nsf": 3 * N_BINS - 1, "maf": 2}


@final
class Flow(DensitySettings):
    """Normalizing flow: real columns are mapped to a standard normal; log p(x) is exact.

    Columns that are not real have the distributions that every density gives them. Needs
    ``pip install 'fewlier[flow]'``.

    Parameters
    ----------
    kind : {"maf", "nsf"}
        Affine maps (masked autoregressive flow) or splines (neural spline flow).
    n_transforms : int
        Number of transformations, one after the other.
    hidden : sequence of int
        Units of each hidden layer of every network.

    Examples
    --------
    >>> from fewlier import AnomalyDetector, Flow
    >>> AnomalyDetector(density=Flow(kind="nsf", n_transforms=5))
    AnomalyDetector(density=Flow(kind='nsf', n_transforms=5))
    """

    def __init__(
        self, *, kind: str = "maf", n_transforms: int = 3, hidden: Sequence[int] = (100,)
    ) -> None:
        self.kind = kind
        self.n_transforms = n_transforms
        self.hidden = hidden

    def read(self, name: str, value: object) -> Any:  # noqa: ANN401 - each parameter has its type
        """Return a parameter as plain numbers, or the kind."""
        if name == "kind":
            is_kind = isinstance(value, str) and value in _N_PARAMETERS
            self.require(name, value, is_kind, f"one of {sorted(_N_PARAMETERS)}")
            return value
        read = super().read(name, value)
        if name == "n_transforms":
            self.require(name, value, read <= MAX_LAYERS, f"at most {MAX_LAYERS}")
        return read

    def lay_out(self, joint: Joint) -> Density:
        """Return the flow, with nothing drawn yet."""
        return FlowDensity(self, joint)


@final
class FlowDensity(Density):
    r"""p(x) = p(m_R) p(x_R | m_R) prod_d p(m_d, x_d | x_R, m_R, earlier others).

    R are the columns that a mixture of Gaussians scores in other densities, m which cells are
    missing. p(x_R | m_R) is a flow: x_R is mapped to z by `n_transforms` transformations, each
    z_j = f(x_j; parameters from the columns before j in an ordering, and m_R), and

        log p(x_R | m_R) = sum_j log N(z_j | 0, 1) + log dz_j / dx_j,

    the derivative being the product of those of column j in each transformation. Missing columns
    are held at the centre of their range throughout, so that this is a density of the observed
    ones. All other columns, and m, have the conditionals of MADE under one ordering: a flow has no
    density at points that carry mass of their own.
    """

    is_probabilistic: ClassVar[bool] = True
    unit: ClassVar[str] = "nats"
    remainder: ClassVar[str] = "(none)"
    meaning: ClassVar[str] = (
        "A real column contributes how far out its latent coordinate lies, less how much the flow "
        "stretches it; any other column what its value costs, given the real columns and those "
        "before it; each beyond what it is for normal rows. They add up without a remainder."
    )

    real: Int[Tensor, " r"]
    gappy: Int[Tensor, " c"]

    def __init__(self, settings: Flow, joint: Joint) -> None:
        super().__init__(settings, joint)
        real = joint.columns_of(GaussianMixture)
        gappy = real[torch.isin(real, joint.mixed)]
        self.register_buffer("real", real, persistent=False)
        self.register_buffer("gappy", gappy, persistent=False)
        self.flow = _RealFlow(len(real), len(gappy), settings)
        self.others = _Others(joint, real, settings)

    def draw(self, generator: torch.Generator) -> None:
        """Draw the ordering of the real columns, and the degrees of all networks."""
        self.flow.draw(generator)
        self.others.draw(generator)

    def check_structure(self) -> None:
        """Refuse orderings and degrees that would let a column see itself, or beyond the last."""
        self.flow.check_structure()
        self.others.check_structure()

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights; the flow starts near the identity."""
        self.flow.reset(generator)
        self.others.reset(generator)

    def phi(self, rows: Rows, index: int) -> Float[Tensor, "*n p"]:  # noqa: ARG002 - one pass
        """Return the parameters of all columns but the real ones, which have none."""
        phi: Tensor = self.others(rows.inputs)
        return phi

    def terms(self, rows: Rows, index: int) -> Terms:
        """Return the cells' terms: real columns by the flow, the others by their conditionals."""
        terms = super().terms(rows, index)
        if not len(self.real):
            return terms
        value = self.flow(*self._real_cells(rows)) - self.joint.log_scale[self.real]
        return terms._replace(value=terms.value.index_copy(-1, self.real, value))

    def expect(self, rows: Rows, index: int, cells: CellPlaces) -> Expected:
        """Return what was expected; of a real column, given the transformations at its row."""
        expected = super().expect(rows, index, cells)
        lines = torch.isin(cells.columns, self.real.cpu()).nonzero().squeeze(-1)
        if len(lines):
            place = torch.searchsorted(self.real.cpu(), cells.columns[lines])
            found = self.flow.quantiles(*self._real_cells(rows)).cpu().double()
            expected.quantiles[lines] = found[:, cells.rows[lines], place].T
        return expected

    def _real_cells(
        self, rows: Rows
    ) -> tuple[Float[Tensor, "*n r"], Bool[Tensor, "*n r"], Float[Tensor, "*n c"]]:
        """Return targets of the real columns, which are observed, and which are missing."""
        missing = ~rows.observed[..., self.gappy]
        real = rows.targets[..., self.real], rows.observed[..., self.real]
        return *real, missing.to(rows.targets)


@final
class _RealFlow(nn.Module):
    """log density of r columns, given which of c of them are missing; see `Flow`.

    Transformations take a random ordering of the columns and its reverse in turn, so that each
    column may depend on all others.
    """

    positions: Int[Tensor, "*m t r"]

    def __init__(self, n_columns: int, n_gappy: int, settings: Flow) -> None:
        super().__init__()
        _zuko()  # say what is missing before anything is trained
        n_transforms = settings.n_transforms if n_columns else 0
        self.kind, self.n_gappy = settings.kind, n_gappy
        self.slope = MAX_STRETCH ** (-1 / settings.n_transforms)
        widths = [n_columns + n_gappy, *settings.hidden, n_columns * _N_PARAMETERS[self.kind]]
        self.networks = nn.ModuleList(MaskedMLP(widths) for _ in range(n_transforms))
        self.register_buffer("positions", empty_integers(n_transforms, n_columns))
        lay_out_degrees(self, n_transforms, hidden=settings.hidden)

    def draw(self, generator: torch.Generator) -> None:
        """Draw an ordering, which transformations take forwards and backwards, and the degrees."""
        n_columns = self.positions.shape[-1]
        order = torch.randperm(n_columns, generator=generator)
        self.positions[::2] = order
        self.positions[1::2] = n_columns - 1 - order
        draw_degrees(self, self.n_steps, generator)

    @property
    def n_steps(self) -> int:
        """Positions in the ordering that networks read: one for the gaps comes before all."""
        return self.positions.shape[-1] + bool(self.n_gappy)

    def check_structure(self) -> None:
        """Refuse orderings and degrees that cannot have been drawn."""
        check_orderings(self.positions)
        check_degrees(self, self.n_steps)

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights: outputs near 0 make a transformation near the identity."""
        for network in self.networks:
            mlp = cast("MaskedMLP", network)  # a ModuleList forgets what it holds
            mlp.reset(torch.zeros_like(mlp.biases[-1]), generator)

    def masks(self, t: int) -> list[Bool[Tensor, "*_ _ _"]]:
        """Return the masks of the network of transformation t, one per layer."""
        position = self.positions[..., t, :] + bool(self.n_gappy)
        return autoregressive_masks(
            functional.pad(position, (0, self.n_gappy)),
            [degrees[..., t, :] for degrees in degrees_of(self)],
            position.repeat_interleave(_N_PARAMETERS[self.kind], -1),
        )

    def forward(
        self, x: Float[Tensor, "*n r"], observed: Bool[Tensor, "*n r"], gaps: Float[Tensor, "*n c"]
    ) -> Float[Tensor, "*n r"]:
        """Return each column's share of the log density of targets x, whose sum it is."""
        z, total = 2 * HALF_RANGE * (x - 0.5), math.log(2 * HALF_RANGE)
        for t in range(len(self.networks)):
            # A missing column stays at the centre. If it moved along with the others, a later
            # transformation would learn from it about columns that it must not see.
            z = torch.where(observed, z, 0)
            z, log_slope = self._transformation(t, z, gaps).call_and_ladj(z)
            total = total + log_slope
        return total - 0.5 * (z * z) - 0.5 * math.log(2 * math.pi)

    def quantiles(
        self, x: Float[Tensor, "n r"], observed: Bool[Tensor, "n r"], gaps: Float[Tensor, "n c"]
    ) -> Float[Tensor, "q n r"]:
        """Return the targets at `SHARES` of each column: normal quantiles, mapped back."""
        z, transformations = 2 * HALF_RANGE * (x - 0.5), []
        for t in range(len(self.networks)):
            z = torch.where(observed, z, 0)
            transformations.append(self._transformation(t, z, gaps))
            z = transformations[-1](z)
        ends: Tensor = torch.special.ndtri(z.new_tensor(SHARES))[:, None, None].expand(-1, *z.shape)
        for transformation in reversed(transformations):
            ends = transformation.inv(ends)
        return ends / (2 * HALF_RANGE) + 0.5

    def _transformation(self, t: int, z: Float[Tensor, "*n r"], gaps: Float[Tensor, "*n c"]) -> Any:  # noqa: ANN401 - zuko has no types
        """Return transformation t of every column, given the columns before it."""
        seen = torch.cat([z.clamp(-SPLINE_BOUND, SPLINE_BOUND), gaps], -1)
        phi = self.networks[t](seen, self.masks(t)).unflatten(-1, (z.shape[-1], -1))
        return _transform(self.kind, phi, self.slope)


@final
class _Others(nn.Module):
    """The parameters of all columns but the real ones, and of what is missing; see `FlowDensity`.

    Steps of the ordering: whether each real column is missing, all real values at once, then the
    other columns one by one, in the order of the table.
    """

    kept: Int[Tensor, " k"]
    input_steps: Int[Tensor, " i"]
    output_steps: Int[Tensor, " k"]

    def __init__(self, joint: Joint, real: Int[Tensor, " r"], settings: Flow) -> None:
        super().__init__()
        with torch.device("cpu"):  # constants are computed even where arrays are only laid out
            self.n_parameters = len(joint.owner)
            is_value = torch.arange(self.n_parameters) < self.n_parameters - joint.blocks[-1]
            kept = (~(is_value & torch.isin(joint.owner, real))).nonzero().squeeze(-1)
            self.initial = joint.initial()[kept]
            outputs = joint.owner[kept]
            self.n_steps, input_steps, output_steps = _steps(joint.input_owner, outputs, real)
        self.register_buffer("kept", kept, persistent=False)
        self.register_buffer("input_steps", input_steps, persistent=False)
        self.register_buffer("output_steps", output_steps, persistent=False)
        widths = [len(input_steps), *settings.hidden, len(kept)] if len(kept) else [0]
        self.network = MaskedMLP(widths)
        lay_out_degrees(self, hidden=widths[1:-1])

    def draw(self, generator: torch.Generator) -> None:
        """Draw the degrees."""
        draw_degrees(self, self.n_steps, generator)

    def check_structure(self) -> None:
        """Refuse degrees that cannot have been drawn."""
        check_degrees(self, self.n_steps)

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights."""
        if len(self.kept):
            self.network.reset(self.initial, generator)

    def forward(self, inputs: Float[Tensor, "*n i"]) -> Float[Tensor, "*n p"]:
        """Return the parameters of all conditionals, 0 for those of real columns."""
        phi = inputs.new_zeros(*inputs.shape[:-1], self.n_parameters)
        if not len(self.kept):
            return phi
        masks = autoregressive_masks(self.input_steps, degrees_of(self), self.output_steps)
        return phi.index_copy(-1, self.kept, self.network(inputs, masks))


def _steps(
    input_owner: Int[Tensor, " i"], output_owner: Int[Tensor, " k"], real: Int[Tensor, " r"]
) -> tuple[int, Int[Tensor, " i"], Int[Tensor, " k"]]:
    """Return how many steps the ordering has, and the steps of the inputs and outputs.

    Of n columns, real column d is known to be missing, or not, at step d; the values of all real
    columns are known at step n, and any other column d at step n + 1 + d. Unused steps are closed.
    """
    n = 1 + int(input_owner.max())
    column = torch.arange(n)
    is_real = torch.isin(column, real)
    value = torch.where(is_real, n, n + 1 + column)
    presence = torch.where(is_real, column, value)
    # A real column's first input is its value; a second, behind all values, says if it is missing.
    _, first = np.unique(input_owner, return_index=True)
    is_value = torch.isin(torch.arange(len(input_owner)), torch.from_numpy(first))
    inputs = torch.where(is_value, value[input_owner], presence[input_owner])
    outputs = presence[output_owner]
    steps, dense = torch.cat([inputs, outputs]).unique(return_inverse=True)
    return len(steps), dense[: len(inputs)], dense[len(inputs) :]


def _zuko() -> Any:  # noqa: ANN401 - an optional package without types
    try:
        from zuko import transforms
    except ImportError as error:
        raise UserError(
            f"{parameter('density', 'flow')} needs the package zuko, which is not installed. "
            "Run: pip install 'fewlier[flow]'",
            parameter="density",
        ) from error
    return transforms


def _transform(kind: str, phi: Float[Tensor, "*n r p"], slope: float) -> Any:  # noqa: ANN401
    """Return the transformation of each column, with parameters phi."""
    transforms = _zuko()
    if kind == "maf":
        return transforms.MonotonicAffineTransform(*phi.unbind(-1), slope=slope)
    parts = phi.split((N_BINS, N_BINS, N_BINS - 1), -1)
    return transforms.MonotonicRQSTransform(*parts, bound=SPLINE_BOUND, slope=slope)
