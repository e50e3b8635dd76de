"""Whether the graph says what the library says."""

import numpy as np
import torch
from torch import Tensor

from fewlier.graph.columns import NO_CODE, NO_DATE, UNSEEN, inputs_of
from fewlier.table import Encoder, Table
from fewlier.table.cells import missing


def columns_of(encoder: Encoder, table: Table) -> list[Tensor]:
    """Return the inputs of the graph for a table in the form of the schema."""
    found = []
    for one in inputs_of(encoder):
        cells = table.cells[one.name]
        if one.codes is not None:
            codes = [NO_CODE if c is None else one.codes.get(c, UNSEEN) for c in cells]
            found.append(torch.tensor(codes))
        else:
            found.append(torch.from_numpy(cells))
    return found
