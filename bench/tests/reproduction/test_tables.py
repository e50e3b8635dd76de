import io
import re

import numpy as np
import pytest
from made_up_results import DEDUPLICATED, paper_results, result, time_results, variant_results
from rich.console import Console

from fewlier_bench.pages.printed import AVERAGE, Value
from fewlier_bench.pages.rendering import print_table, to_markdown
from fewlier_bench.reproduction.experiments import METHODS, SUPERVISED
from fewlier_bench.reproduction.published import published_average, setting_datasets
from fewlier_bench.reproduction.tables import (
    auc_table,
    averages_table,
    dataset_table,
    tables_of_run,
    times_of_run,
    times_table,
    variant_table,
)


@pytest.fixture(scope="module")
def results():
    return paper_results()


def show(results, ks, console):
    for table in tables_of_run(results, ks):
        print_table(table, table.title, console)


def cell(table, row, heading):
    (column,) = (column for column in table.columns if column.heading == heading)
    return column.values[table.rows.index(row)]


def without(results, dataset, method, k=3):
    return [row for row in results if (row.dataset, row.method, row.k) != (dataset, method, k)]


def test_a_cell_holds_our_mean_and_the_papers(results):
    table = auc_table(results, 3, "table_2")
    aucs = [r.auc for r in results if (r.dataset, r.method, r.k) == ("Wilt", "SVM", 3)]
    value = cell(table, "Wilt", "SVM")
    assert value.ours == pytest.approx(np.mean(aucs))
    assert value.reference == 0.801
    assert value.difference == pytest.approx(np.mean(aucs) - 0.801)


def test_the_average_row_is_that_of_the_rows_above(results):
    table = auc_table(results, 3, "table_2")
    assert table.rows[-1] == AVERAGE
    for column in table.columns:
        *above, average = [value.ours for value in column.values]
        assert average == pytest.approx(np.mean(above))
    assert cell(table, AVERAGE, "Proposed").reference == 0.839
    assert [c.heading for c in table.columns if c.values[-1].is_bold] == ["Proposed"]


def test_tests_include_methods_that_are_not_shown():
    rng = np.random.default_rng(0)
    aucs = {"LOF": 0.9, "KNN": 0.7, "SVM": 0.6}
    rows = [
        result("Pima", method, 1, split, auc + rng.normal(0, 0.01))
        for method, auc in aucs.items()
        for split in range(10)
    ]
    table = auc_table(rows, 1, "table_3a", SUPERVISED)
    assert [column.heading for column in table.columns] == list(SUPERVISED)
    assert not cell(table, "Pima", "KNN").is_bold
    assert cell(auc_table(rows, 1, "all"), "Pima", "LOF").is_bold


def test_the_extra_method_is_marked_and_takes_no_part(results):
    high = [
        result(r.dataset, r.method, r.k, r.split, 0.9999) if r.method == "fewlier" else r
        for r in results
    ]
    table = auc_table(high, 3, "table_2")
    assert table.columns[-1].heading == "fewlier †"
    assert not any(value.is_bold for value in table.columns[-1].values)
    assert table.columns[:-1] == auc_table(results, 3, "table_2").columns[:-1]
    assert any("not one of the paper's methods" in note for note in table.notes)


def test_an_average_is_over_the_tables_that_all_methods_have(results):
    partial = without(results, "Pima", "LOF")
    table = auc_table(partial, 3, "table_2")
    assert cell(table, "Pima", "LOF").ours is None
    rest = [name for name in setting_datasets(3) if name != "Pima"]
    for method in METHODS:
        *rows, average = (value.ours for value in cell_column(table, method))
        kept = [row for row, name in zip(rows, setting_datasets(3), strict=True) if name != "Pima"]
        assert average == pytest.approx(np.mean(kept))
        reference = cell(table, AVERAGE, method).reference
        assert reference == pytest.approx(published_average(method, 3, rest))
    assert any("15 of 16 tables" in note and "Pima" not in note for note in table.notes)
    assert "–: LOF on Pima: no result." in table.notes


def cell_column(table, heading):
    (values,) = (column.values for column in table.columns if column.heading == heading)
    return values


def test_a_failure_is_reported_with_its_reason(results):
    failed = result("Wilt", "SVM", 3, 4, None, reason="MemoryError:\n  out of | memory.")
    table = auc_table([*results, failed], 3, "table_2")
    assert "| – (0.801) |" in to_markdown(table)
    assert "–: SVM on Wilt: MemoryError: out of | memory." in table.notes


def test_a_table_with_fewer_splits_is_named(results):
    partial = [row for row in results if row.dataset != "Wilt" or row.split < 7]
    assert "Fewer than 10 splits: Wilt (7)." in auc_table(partial, 3, "table_2").notes


def test_without_results_there_is_no_average():
    table = auc_table([], 5, "table_3b")
    assert all(value.ours is None for column in table.columns for value in column.values)
    assert any("no average" in note for note in table.notes)
    assert f"No results: {', '.join(setting_datasets(5))}." in table.notes


def test_many_cells_with_one_reason_are_one_note(results):
    partial = [row for row in results if row.method != "VAE" or row.split > 1]
    (note,) = (note for note in auc_table(partial, 3, "table_2").notes if note.startswith("–"))
    assert "VAE on Ionosphere and 10 more: no result in 2 of 10 splits" in note


def test_ranks_are_among_the_methods_with_results(results):
    table = averages_table([row for row in results if row.method != "VAE"], (3,))
    for side in ("ours", "reference"):
        ranks = [getattr(cell(table, m, "rank, k = 3"), side) for m in METHODS if m != "VAE"]
        assert sum(ranks) == pytest.approx(45)
    assert cell(table, "VAE", "rank, k = 3") == Value(None, None)


def test_averages_and_ranks_are_beside_the_papers(results):
    table = averages_table(results, (1, 3, 5))
    assert cell(table, "Proposed", "AUC, k = 5").reference == 0.859
    rank = cell(table, "Proposed", "rank, k = 3")
    assert rank.reference == pytest.approx(2.75)  # ranks of the ten printed AUCs, by hand
    ranks = [cell(table, method, "rank, k = 3").ours for method in METHODS]
    assert sum(ranks) == pytest.approx(55)
    assert cell(table, "fewlier †", "rank, k = 3").ours is None


def test_table_1_has_the_counts_of_both():
    text = to_markdown(dataset_table())
    assert "| KDDCup99 | 60839 (60839) | 79 (79) | 246 (246) | 0.004 (0.004) |" in text
    assert "difference" not in text


def test_a_variant_is_beside_the_main_run(results):
    table = variant_table(variant_results((3,), DEDUPLICATED), results, (3,), "v", "Variant")
    assert table.rows == (*DEDUPLICATED, AVERAGE)
    main = cell(auc_table(results, 3, "table_2"), "Wilt", "MADE").ours
    assert cell(table, "Wilt", "MADE, k = 3").reference == pytest.approx(main)
    references = [value.reference for value in cell_column(table, "Proposed, k = 3")]
    assert references[-1] == pytest.approx(np.mean(references[:-1]))
    assert any("paper's average of Proposed over these tables is 0.837" in n for n in table.notes)


def test_a_variant_with_too_few_splits_is_not_compared(results):
    few = variant_results((3,), DEDUPLICATED, n_splits=4)
    table = variant_table(few, results, (3,), "v", "Variant")
    assert cell(table, "Wilt", "MADE, k = 3").ours is None
    assert any("no result in 6 of 10 splits" in note for note in table.notes)


def test_times_are_beside_the_papers():
    (row,) = (row for row in time_results() if row.dataset == "Wilt")
    assert f"| Wilt | {row.seconds:.2f} (0.82) |" in to_markdown(times_table(time_results()))


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_terminal_shows_every_value_at_any_width(results, width):
    file = io.StringIO()
    show(results, (1, 3), Console(file=file, width=width))
    text = file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    value = cell(auc_table(results, 3, "table_2"), "Wilt", "SVM")
    shown = f"{value.ours:.3f} {value.difference:+.3f}".replace("0.", ".")
    assert shown in text
    for method in METHODS:
        assert len(re.findall(rf"\b{method}\b", text)) >= 2
    assert "3 training anomalies" in text


def test_the_terminal_shows_only_what_has_results(results):
    file = io.StringIO()
    some = [r for r in results if r.dataset in ("Pima", "Wilt") and r.method in ("LOF", "Proposed")]
    show(some, (3,), Console(file=file, width=120))
    text = file.getvalue()
    assert "KNN" not in text
    names = [line.split()[0] for line in text.splitlines() if line.strip()]
    assert names == ["Mean", "LOF", "Pima", "Wilt", "average"]


def test_the_terminal_shows_seconds_beside_the_papers():
    file = io.StringIO()
    rows = [row for row in time_results() if row.dataset in ("Wilt", "Pima")]
    (pima, wilt) = sorted(rows, key=lambda row: row.dataset)
    failed = result("Stamps", "Proposed", 3, 0, None, seconds=None, reason="stopped")
    print_table(times_of_run([wilt, failed, pima]), "Seconds:", Console(file=file, width=100))
    title, *lines = file.getvalue().strip().splitlines()
    assert title == "Seconds:"
    assert [line.split() for line in lines[1:]] == [
        ["Pima", f"{pima.seconds:.2f}", "(0.05)"],
        ["Stamps", "–"],
        ["Wilt", f"{wilt.seconds:.2f}", "(0.82)"],
    ]


def test_the_terminal_shows_gaps_and_skips_what_no_table_has(results):
    file = io.StringIO()
    some = [r for r in results if r.dataset == "Parkinson" and (r.method != "KNN" or r.split)]
    failed = result("Parkinson", "KNN", 3, 0, None, reason="stopped [at once]")
    show([*some, failed], (3, 5), Console(file=file, width=200))
    text = file.getvalue()
    assert "5 training anomalies" not in text
    assert " – " in text
    assert "–: KNN on Parkinson: stopped [at once]." in text
