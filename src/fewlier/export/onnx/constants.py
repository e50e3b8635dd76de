"""Numbers that stay in a graph as they are."""

import torch
from torch import Tensor


def exact(value: float) -> Tensor:
    """Return a number as a tensor of float64.

    torch.onnx rounds the plain numbers of a formula to float32, also beside tensors of float64: a
    date would be off by a minute. Whole numbers up to 2**24 may stay plain.
    """
    return torch.tensor(value, dtype=torch.float64)
