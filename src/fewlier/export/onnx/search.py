"""A search among sorted numbers in operations that ONNX has."""

import torch
from torch import Tensor


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
