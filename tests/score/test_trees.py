"""Trees and rules that tell labelled anomalies from normals, beside density and neighbours."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from factories import small
from sklearn import ensemble, tree
from sklearn.metrics import roc_auc_score

from fewlier.density.rows import Rows
from fewlier.score.learned.supervised import Bag
from fewlier.score.learned.trees import Rules, Trees
from fewlier.table import Table

CPU = torch.device("cpu")


def bags(n_bags=4):
    rng = np.random.default_rng(0)
    for seed in range(n_bags):
        x = rng.normal(size=(60, 5)).astype(np.float32)
        y = np.arange(60) < 6 + seed
        x[y, 1] += 1.5
        yield Bag.of(x, y, seed)


@pytest.fixture
def kept(monkeypatch):
    """Return what scikit-learn fits."""
    found = []
    for module, kind in (
        (tree, tree.DecisionTreeClassifier),
        (ensemble, ensemble.GradientBoostingClassifier),
    ):

        class Kept(kind):
            def fit(self, *args, **kwargs):
                found.append(super().fit(*args, **kwargs))
                return found[-1]

        monkeypatch.setattr(module, kind.__name__, Kept)
    return found


def fresh():
    return np.random.default_rng(9).normal(size=(200, 5)).astype(np.float32)


def weights():
    return np.random.default_rng(8).uniform(0, 2, (200, 4))


def test_trees_score_the_share_of_anomalies_beyond_one_half(kept):
    found = Trees.learn(bags(), 5, CPU)
    expected = np.stack([tree.predict_proba(fresh())[:, 1] - 0.5 for tree in kept], 1)
    x, own = torch.from_numpy(fresh()), weights()
    np.testing.assert_allclose(found.gains(x).sum(1), expected.sum(1), atol=1e-9)
    weighed = found.gains(x, torch.from_numpy(own)).sum(1)
    np.testing.assert_allclose(weighed, (own * expected).sum(1), atol=1e-9)


def test_rules_score_the_log_odds(kept):
    found = Rules.learn(bags(), 5, CPU)
    assert len(kept) == 4
    expected = np.stack([boosted.decision_function(fresh()) for boosted in kept], 1)
    x, own = torch.from_numpy(fresh()), weights()
    np.testing.assert_allclose(found.gains(x).sum(1), expected.sum(1), atol=1e-9)
    weighed = found.gains(x, torch.from_numpy(own)).sum(1)
    np.testing.assert_allclose(weighed, (own * expected).sum(1), atol=1e-9)


def test_what_rules_say_of_a_column_does_not_depend_on_the_others():
    found, x = Rules.learn(bags(), 5, CPU), torch.from_numpy(fresh())
    other = x.clone()
    other[:, 1:] = 7.0
    assert torch.equal(found.gains(other)[:, 0], found.gains(x)[:, 0])


def test_rows_that_are_all_alike_teach_no_rule():
    one = Bag.of(np.zeros((8, 5), dtype=np.float32), np.arange(8) < 2, 0)
    for kind in (Trees, Rules):
        assert not kind.learn([one], 5, CPU).gains(torch.from_numpy(fresh())).any()


@pytest.mark.slow
def test_a_detector_with_many_labels_learns_what_only_labels_tell():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(600, 5)), columns=list("abcde"))
    odd = np.arange(600) < 30
    table.loc[odd, "c"] = rng.uniform(0.4, 0.8, 30)  # in the middle of normal rows
    fresh = pd.DataFrame(rng.normal(size=(400, 5)), columns=list("abcde"))
    fresh.loc[:99, "c"] = rng.uniform(0.4, 0.8, 100)
    detector = small(max_epochs=3).fit(table, odd)
    truth = np.arange(400) < 100
    model = detector.model_
    without = replace(model.scorer, others=model.scorer.others[:1])
    encoded = model.encode(Table.of(fresh))
    both, alone = (roc_auc_score(truth, s.score(encoded)) for s in (model.scorer, without))
    assert both > alone + 0.05
    scores = detector.anomaly_score(fresh)
    np.testing.assert_allclose(detector.explain(fresh).score, scores, rtol=1e-9, atol=1e-9)
    order = rng.permutation(400)[:33]
    np.testing.assert_array_equal(detector.anomaly_score(fresh.iloc[order]), scores[order])
    rows = Rows.of(encoded)
    before = {"neighbours": model.parts["neighbours"].contributions(rows, {})}
    for name in ("trees", "rules"):
        columns = model.parts[name].contributions(rows, before)
        assert (columns[:100].mean(0) - columns[100:].mean(0)).argmax() == 2
