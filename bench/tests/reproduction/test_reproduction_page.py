import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from made_up_results import paper_results, write_results

from fewlier.errors import UserError
from fewlier_bench.reproduction import illustrations
from fewlier_bench.reproduction.remarks import (
    describe_agreement,
    describe_default_detector,
    list_large_differences,
)
from fewlier_bench.reproduction.reproduction_page import fill, write_page

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "evidence" / "REPRODUCTION.md"
RESULTS = ROOT / "results" / "reproduction"


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def page_with(tmp_path, *blocks, prose="By hand.\n"):
    marks = "".join(
        f"<!-- begin generated: {name} -->\nold\n<!-- end generated -->\n{prose}" for name in blocks
    )
    page = tmp_path / "page.md"
    page.write_text(prose + marks, "utf-8")
    return page


def test_the_committed_page_is_what_the_committed_results_give(tmp_path):
    docs, results = tmp_path / "docs", tmp_path / "results"
    docs.mkdir()
    shutil.copy(PAGE, docs)
    shutil.copytree(RESULTS, results)
    shutil.rmtree(results / "tables")
    write_page(results, docs / PAGE.name)
    remedy = "run: fewlier-bench reproduce --page docs/evidence/REPRODUCTION.md"
    assert (docs / PAGE.name).read_text("utf-8") == PAGE.read_text("utf-8"), remedy
    assert contents(results) == contents(RESULTS), remedy
    drawn, kept = (contents(folder / "figures" / "reproduction") for folder in (docs, PAGE.parent))
    assert drawn.keys() == kept.keys(), remedy
    # The first figure shows a fit, whose last digits depend on the processor.
    stable = drawn.keys() - {"figure_1.svg"}
    assert [name for name in stable if drawn[name] != kept[name]] == [], remedy


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """Return a folder with the page of made-up results; the figure of a fit is left out."""
    folder = tmp_path_factory.mktemp("full")
    (folder / "docs").mkdir()
    shutil.copy(PAGE, folder / "docs")
    write_results(folder / "results", n_splits=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(illustrations, "draw_example", illustrations.draw_sigmoid)
        write_page(folder / "results", folder / "docs" / PAGE.name)
    return folder


def test_a_full_run_fills_every_part(full):
    text = (full / "docs" / PAGE.name).read_text("utf-8")
    assert "No results yet" not in text
    assert "| Proposed has the highest average AUC of the ten methods with k = 3 | holds |" in text
    assert "- Machines: a machine.\n" in text
    tables = {"table_1", "table_2", "table_3a", "table_3b", "averages", "times", "deduplicated"}
    names = {f"{name}.csv" for name in (*tables, "three_validation_anomalies")}
    assert set(contents(full / "results" / "tables")) == names


def test_figures_are_small_and_without_a_date(full):
    figures = contents(full / "docs" / "figures" / "reproduction")
    assert len(figures) == 5
    for name, data in figures.items():
        assert name.endswith(".svg")
        assert len(data) < 200_000, name
        assert b"<dc:date>" not in data


def test_prose_stays_and_parts_are_replaced(tmp_path):
    text = page_with(tmp_path, "table_1", "run", prose="By hand, \\1.\n").read_text("utf-8")
    filled = fill(text, {"table_1": "| \\1 |\n", "run": "- new\n"})
    assert filled.count("By hand, \\1.\n") == 3
    assert "\nold\n" not in filled
    assert "<!-- begin generated: table_1 -->\n\n| \\1 |\n\n<!-- end generated -->\n" in filled
    assert fill(filled, {"table_1": "old\n", "run": "old\n"}).count("\n\nold\n\n") == 2


def test_large_differences_are_listed():
    results = [
        replace(row, auc=row.auc + 0.1) if row.method == "NN" else row for row in paper_results(2)
    ]
    lines = list_large_differences(results).splitlines()
    assert [line.split(":")[0] for line in lines] == [f"- k = {k}, NN" for k in (1, 3, 5)]
    assert list_large_differences(paper_results(2)) == "- none\n"


def test_what_has_no_results_is_said():
    assert describe_agreement([]) == describe_default_detector([]) == "- no results\n"
    without = [row for row in paper_results(2) if row.method != "fewlier"]
    assert describe_default_detector(without) == "- no results\n"


def test_agreement_counts_the_cells_that_the_paper_prints():
    lines = describe_agreement(paper_results(2)).splitlines()
    assert [line.split(",")[0] for line in lines] == [
        "- k = 1: 80 cells",
        "- k = 3: 160 cells",
        "- k = 5: 70 cells",
    ]


def test_a_page_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"got .*other\.md, which is not a file\. Name docs/evid"):
        write_page(tmp_path / "results", tmp_path / "other.md")


def test_a_page_without_parts_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Nothing here.\n")
    with pytest.raises(UserError, match=r"must be among run, claims.*; got none\. Put '<!-- begin"):
        write_page(tmp_path / "results", page)


def test_an_unknown_part_is_refused(tmp_path):
    page = page_with(tmp_path, "table_1", "table_9")
    with pytest.raises(UserError, match=r"must be among .*; got table_9"):
        write_page(tmp_path / "results", page)


def test_a_part_without_an_end_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- begin generated: run -->\n" * 2 + "<!-- end generated -->\n")
    with pytest.raises(UserError, match="got 2 that begin and 1 that end"):
        write_page(tmp_path / "results", page)
    assert list(tmp_path.iterdir()) == [page]


def test_a_folder_without_results_does_not_empty_a_page(full, tmp_path):
    page = tmp_path / PAGE.name
    shutil.copy(full / "docs" / PAGE.name, page)
    before = contents(tmp_path)
    with pytest.raises(UserError, match=r"must be a folder with paper\.csv.*; got .*other\. Name"):
        write_page(tmp_path / "other", page)
    assert contents(tmp_path) == before
