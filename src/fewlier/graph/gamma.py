"""log Gamma in operations that ONNX has."""

import math

import torch
from torch import Tensor

_SHIFT = 8
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


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
    for factor in _STIRLING:
        series, power = series + factor * power, power * inverse * inverse
    whole = (z - 0.5) * z.log() - z + 0.5 * math.log(2 * math.pi) + series
    return (whole - product.log()).to(x.dtype)
