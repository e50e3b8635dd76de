"""log Gamma in operations that ONNX has."""

import math

import numpy as np
import torch
from torch import Tensor

_SHIFT = 8
_STIRLING = (12, -360, 1260, -1680, 1188)
# Half the logarithm of 2 pi, in two parts: a graph rounds a plain number to float32.
_FIRST = float(np.float32(0.5 * math.log(2 * math.pi)))
_SECOND = 0.5 * math.log(2 * math.pi) - _FIRST


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
