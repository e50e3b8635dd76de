"""The page of the reproduction: what is generated in it comes from a folder of results."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fewlier.errors import UserError
from fewlier_bench.pages.blocks import EMPTY, fill, read_page, write_text
from fewlier_bench.pages.footnotes import describe_run
from fewlier_bench.pages.printed import PrintedTable
from fewlier_bench.pages.rendering import fold, to_csv, to_folded, to_markdown
from fewlier_bench.reproduction.claims import check_claims
from fewlier_bench.reproduction.experiments import (
    DEDUPLICATED,
    DESIGNS,
    EXPERIMENTS,
    KS,
    LAMBDAS,
    PAPER,
    SUPERVISED,
    THREE_VALIDATION,
    TIMES,
)
from fewlier_bench.reproduction.remarks import (
    LARGE,
    describe_agreement,
    describe_default_detector,
    list_claims,
    list_large_differences,
)
from fewlier_bench.reproduction.tables import (
    auc_table,
    averages_table,
    dataset_table,
    times_table,
    variant_table,
)
from fewlier_bench.runs.results import Result, Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = Path("figures") / "reproduction"  # next to the page
_CAPTIONS = {
    "figure_1": "Figure 1: anomaly scores of a table with one column",
    "figure_2": "Figure 2: the sigmoid of the objective, and the step of the AUC",
    "figure_3": "Figure 3: test AUC against lambda on each table",
    "growth": "Average test AUC against the number of training anomalies",
    "training_times": "Seconds to train Proposed on each table, here and in the paper",
}
_VARIANTS = {
    THREE_VALIDATION: "with three validation anomalies",
    DEDUPLICATED: "without duplicate rows",
}
_NAMES = (
    *("run", "claims", "agreement", "large_differences", "default_detector"),
    *("averages", "table_1", "table_2", "table_3a", "table_3b", TIMES),
    *_VARIANTS,
    *_CAPTIONS,
)

Results = Mapping[str, Sequence[Result]]


def write_page(results: Path, page: Path) -> None:
    """Bring a page up to date with a folder of results.

    Replaces what stands between ``<!-- begin generated: NAME -->`` and ``<!-- end generated -->``
    in the page, and writes tables to `results`/tables and figures to figures/reproduction beside
    the page. The same results give the same files; without those of the paper's experiment nothing
    is written.
    """
    text = read_page(page, _NAMES, "docs/evidence/REPRODUCTION.md")
    store = Store(results)
    if not store.path(PAPER).is_file():
        raise UserError(
            f"Results must be a folder with {store.path(PAPER).name}, else the page would lose its "
            f"numbers; got {results}. Name the folder of a run, or run: fewlier-bench reproduce"
        )
    from fewlier_bench.pages.drawing import save

    found = {experiment: store.read(experiment) for experiment in EXPERIMENTS}
    tables, figures = list(make_tables(found)), make_figures(found)
    for table in tables:
        write_text(results / "tables" / f"{table.name}.csv", to_csv(table))
    for name, figure in figures.items():
        save(figure, page.parent / FIGURES, name)
    write_text(page, fill(text, make_blocks(found, tables, list(figures))))


def make_tables(found: Results) -> Iterator[PrintedTable]:
    """Yield the tables that there are results for."""
    yield dataset_table()
    paper = found[PAPER]
    if paper:
        yield averages_table(paper, KS)
        yield auc_table(paper, 3, "table_2")
        yield auc_table(paper, 1, "table_3a", SUPERVISED)
        yield auc_table(paper, 5, "table_3b", SUPERVISED)
    for variant, words in _VARIANTS.items():
        if found[variant]:
            title, ks = f"Mean test AUC {words}", DESIGNS[variant].anomalies
            yield variant_table(found[variant], paper, ks, variant, title)
    if found[TIMES]:
        yield times_table(found[TIMES])


def make_figures(found: Results) -> dict[str, "Figure"]:
    """Return the figures that there are results for, by the names of their files."""
    from fewlier_bench.reproduction.figures import draw_growth, draw_lambdas, draw_times
    from fewlier_bench.reproduction.illustrations import draw_example, draw_sigmoid

    figures = {"figure_1": draw_example(), "figure_2": draw_sigmoid()}
    if found[LAMBDAS]:
        figures["figure_3"] = draw_lambdas(found[LAMBDAS])
    if found[PAPER]:
        figures["growth"] = draw_growth(found[PAPER])
    if found[TIMES]:
        figures["training_times"] = draw_times(found[TIMES])
    return figures


def make_blocks(
    found: Results, tables: Sequence[PrintedTable], figures: Sequence[str]
) -> dict[str, str]:
    """Return what stands in the generated parts of the page, by their names."""
    blocks = dict.fromkeys(_NAMES, EMPTY)
    blocks |= {table.name: _shown(table) for table in tables}
    blocks |= {name: f"![{_CAPTIONS[name]}]({FIGURES.as_posix()}/{name}.svg)\n" for name in figures}
    if any(found.values()):
        blocks["run"] = describe_run(found)
    if paper := found[PAPER]:
        blocks["claims"] = list_claims(check_claims(paper, found[LAMBDAS]))
        blocks["agreement"] = describe_agreement(paper)
        blocks["large_differences"] = fold(
            f"Methods whose average differs from the paper's by more than {LARGE}",
            list_large_differences(paper),
        )
        blocks["default_detector"] = describe_default_detector(paper)
    return blocks


def _shown(table: PrintedTable) -> str:
    """Leave the averages open; readers unfold the others."""
    return to_markdown(table) if table.name == "averages" else to_folded(table)
