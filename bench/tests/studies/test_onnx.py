"""What the study of graphs does to a table; graphs themselves are made in tests/engines/onnx."""

import numpy as np

from fewlier_bench.studies.onnx import GAPS, planted


def test_a_table_gets_gaps_and_one_column_of_categories_by_the_seed():
    X = np.random.default_rng(0).normal(size=(2000, 5))
    table = planted(X, seed=3)
    assert abs(table.isna().to_numpy().mean() - GAPS) < 0.01
    (text,) = table.select_dtypes(exclude="number").columns
    assert table[text].nunique() == 8
    others = table.columns != text
    known = table.loc[:, others].notna().to_numpy()
    np.testing.assert_array_equal(table.loc[:, others].to_numpy()[known], X[:, others][known])
    assert table.equals(planted(X, seed=3))
    assert not table.equals(planted(X, seed=4))
