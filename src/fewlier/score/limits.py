"""How large the parts of a score may be."""

MAX_NEIGHBOURS = 5000
"""Rows of each label that a row is compared with."""
MAX_NODES = 60_000
"""Nodes of all trees of a model."""
