"""What ONNX lacks, in operations that it has."""

import math
from collections.abc import Callable, Collection
from typing import Any, final

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_SHIFT = 8
_STIRLING = (12, -360, 1260, -1680, 1188)
# Half the logarithm of 2 pi, in two parts: a graph rounds a plain number to float32.
_FIRST = float(np.float32(0.5 * math.log(2 * math.pi)))
_SECOND = 0.5 * math.log(2 * math.pi) - _FIRST


def search_sorted(values: Tensor, x: Tensor) -> Tensor:
    """Return how many of the ascending values (f, m) are below each x (f, n), shape (f, n).

    It takes log2 m steps, each of which looks at one value for each x. To compare each x with all
    values would take n m numbers, and a model keeps up to 100,000 scores of normal rows.
    """
    m = values.shape[1]
    found = torch.zeros_like(x, dtype=torch.int64)
    for power in reversed(range(m.bit_length())):
        further = found + 2**power
        last = values.gather(1, (further - 1).clamp_max(m - 1))
        found = torch.where((further <= m) & (last < x), further, found)
    return found


def log_gamma(x: Tensor) -> Tensor:
    r"""Return log Gamma of positive numbers, in float64.

    log Gamma(x) = log Gamma(x + 8) - log(x (x + 1) ... (x + 7)), and Stirling's series, which from
    8 on has an error below 1e-12.
    """
    number = x.double()
    product = number
    for step in range(1, _SHIFT):
        product = product * (number + step)
    z = number + _SHIFT
    inverse = 1 / z
    series, power = torch.zeros_like(z), inverse
    for divisor in _STIRLING:
        series, power = series + power / divisor, power * inverse * inverse
    whole = (z - 0.5) * z.log() - z + _FIRST + _SECOND + series
    return (whole - product.log()).to(x.dtype)


_WRITTEN_OUT: dict[Callable[..., Tensor], Callable[..., Tensor]] = {
    torch.lgamma: log_gamma,
    torch.searchsorted: search_sorted,
}


@final
class WrittenOut(TorchFunctionMode):
    """Lets what torch is asked for inside the block be computed as a graph computes it."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Collection[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - of torch
        """Call a function, or what stands for it."""
        function: Callable[..., Any] = _WRITTEN_OUT.get(func, func)
        return function(*args, **(kwargs or {}))
