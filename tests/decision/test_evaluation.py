"""Scores against labels, over all and by kind."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from fewlier import UserError
from fewlier.decision.evaluation import MIN_ROWS_OF_KIND, evaluate, evaluate_kinds
from fewlier.table.label_column import LabelColumn
from fewlier.table.labels import Labels

NORMAL = LabelColumn("class", normal=("normal",))


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from(["normal", "a", "b", ""]), st.integers(0, 5)), min_size=1)
)
def test_each_kind_has_the_auc_and_recall_of_its_rows_against_all_normals(rows):
    texts, scores = (np.array(part) for part in zip(("normal", 2), *rows, strict=True))
    labels = NORMAL.read(texts)
    found = evaluate_kinds(scores.astype(float), labels, threshold=2.5)
    assert {line.kind: line.n_rows for line in found} == labels.kind_counts
    for line in found:
        own = texts == line.kind
        judged = own | (texts == "normal")
        assert line.auc == pytest.approx(roc_auc_score(own[judged], scores[judged]))
        assert line.recall == pytest.approx((scores[own] > 2.5).mean())
        assert line.is_few == (own.sum() < MIN_ROWS_OF_KIND)


def test_kinds_labelled_in_training_are_found_whatever_their_case():
    labels = NORMAL.read(["normal", "Smurf", "land"])
    found = evaluate_kinds(np.arange(3.0), labels, 0, {"smurf": 4})
    assert {line.kind: line.n_in_training for line in found} == {"Smurf": 4, "land": 0}
    assert {line.n_in_training for line in evaluate_kinds(np.arange(3.0), labels, 0)} == {None}


def test_unlabelled_rows_are_left_out_where_there_are_normals():
    scores = np.array([1.0, 2.0, 9.0, 3.0])
    found = evaluate(scores, Labels.of([0, 1, None, 0], 4), 1.5)
    assert (found.compared_with, found.n_unlabelled) == ("normal", 1)
    assert (found.auc, found.recall, found.false_alarm_rate) == (0.5, 1, 0.5)


def test_unlabelled_rows_stand_in_where_there_are_no_normals():
    scores = np.array([1.0, 2.0, 9.0, 3.0])
    found = evaluate(scores, Labels.of([None, 1, None, None], 4), 1.5)
    assert (found.compared_with, found.n_normal, found.n_unlabelled) == ("unlabelled", 0, 3)
    assert (found.auc, found.precision) == (pytest.approx(1 / 3), pytest.approx(1 / 3))


@pytest.mark.parametrize("y", [[1, 1], [0, 0], [None, None], [0, None]])
def test_an_evaluation_needs_anomalies_and_rows_to_compare_them_with(y):
    with pytest.raises(UserError, match="an evaluation needs rows labelled anomalous, and normal"):
        evaluate(np.arange(2.0), Labels.of(y, 2), 0)
