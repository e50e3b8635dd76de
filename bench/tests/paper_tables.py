"""Made-up tables with the counts of the paper's."""

import numpy as np

from fewlier_bench.data.catalogue import find_variant


def write_paper_table(folder, name, *, deduplicated=False):
    """Write a table with the counts of one of the paper's; its anomalies are easy to find."""
    variant = find_variant(name, deduplicated=deduplicated)
    rng = np.random.default_rng(variant.n_rows)
    X = rng.normal(size=(variant.n_rows, variant.n_columns)).cumsum(1)
    y = (np.arange(variant.n_rows) < variant.n_anomalies).astype(np.int8)
    X[y == 1, :3] += 4
    names = [f"x{i}" for i in range(variant.n_columns)]
    path = folder / variant.file
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, X=X, y=y, feature_names=names)
