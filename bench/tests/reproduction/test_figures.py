import numpy as np
import pytest
from made_up_results import lambda_results, paper_results, time_results

from fewlier_bench.pages.drawing import save
from fewlier_bench.reproduction.figures import draw_growth, draw_lambdas, draw_times
from fewlier_bench.reproduction.illustrations import (
    draw_sigmoid,
    make_example,
    score_example,
)
from fewlier_bench.reproduction.published import published_datasets

pytestmark = pytest.mark.slow

RESULTS, LAMBDAS, TIMES = paper_results(), lambda_results(), time_results()


def lines(panel):
    return {line.get_label(): line.get_ydata() for line in panel.get_lines()}


def test_each_panel_shows_the_means_of_one_table():
    figure = draw_lambdas(LAMBDAS)
    assert [panel.get_title() for panel in figure.axes] == list(published_datasets())
    (panel,) = (panel for panel in figure.axes if panel.get_title() == "Wilt")
    means = [
        np.mean([r.auc for r in LAMBDAS if (r.dataset, r.k, r.method) == ("Wilt", 3, method)])
        for method in ("lambda=0", "lambda=0.1", "lambda=10000")
    ]
    drawn = [np.asarray(line.get_ydata()) for line in panel.get_lines()]
    assert any(np.allclose(y, means[0]) for y in drawn if len(y) == 2)
    assert any(np.allclose(y[[0, -1]], means[1:]) for y in drawn if len(y) == 6)


def test_growth_is_drawn_on_common_tables_and_as_printed():
    left, right = draw_growth(RESULTS).axes
    assert "14 tables" in left.get_title()
    np.testing.assert_allclose(lines(right)["the paper"], [0.807, 0.821, 0.839, 0.859])
    np.testing.assert_allclose(lines(left)["the paper"], [0.7998, 0.8067, 0.8318, 0.859], atol=1e-4)


def test_figures_of_a_run_in_progress_can_be_drawn(tmp_path):
    some = {"Annthyroid", "Wilt"}
    save(draw_lambdas([r for r in LAMBDAS if r.dataset in some and r.split < 1]), tmp_path, "a")
    save(draw_growth([r for r in RESULTS if r.k == 3]), tmp_path, "b")
    save(draw_times(TIMES[:2]), tmp_path, "c")
    assert len(list(tmp_path.iterdir())) == 3


def test_the_example_finds_and_misses_what_the_paper_says():
    example = make_example()
    found = [
        list(score(example.test) > score(example.normals).max())
        for score in score_example(example).values()
    ]
    assert found == [[True, False, True], [False, True, False], [True, True, True]]


def test_the_panel_of_the_sigmoid_has_it_and_the_step():
    (panel,) = draw_sigmoid().axes
    step, sigmoid = panel.get_lines()
    x, y = np.asarray(sigmoid.get_xdata()), np.asarray(sigmoid.get_ydata())
    np.testing.assert_allclose(y, 1 / (1 + np.exp(-x)))
    assert list(step.get_ydata()) == [0, 0, 1, 1]
