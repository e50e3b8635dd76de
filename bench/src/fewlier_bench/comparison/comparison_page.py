"""The pages of comparisons with few labels: their tables come from folders of results."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from fewlier.errors import UserError
from fewlier_bench.comparison import adgym_tables, comparison_tables, parts_tables
from fewlier_bench.comparison.adgym_jobs import EXPERIMENT as ADGYM
from fewlier_bench.comparison.adgym_published import describe_check
from fewlier_bench.comparison.overview_table import overview_table
from fewlier_bench.data.few_labels import CLEAN, N_DRAWS
from fewlier_bench.pages.blocks import EMPTY, fill, read_page, write_text
from fewlier_bench.pages.footnotes import describe_run
from fewlier_bench.pages.printed import PrintedTable
from fewlier_bench.pages.rendering import to_csv, to_folded, to_list, to_markdown
from fewlier_bench.runs.results import Result, Store

_RUN, _CHECK, _SECONDS, _OVERVIEW = "run", "check", "seconds", "overview"
_PARTS = "parts.csv"  # beside the folder of results
_FIGURES = Path("figures") / "comparison"  # next to the page
_CAPTION = "Mean test AUC of each method against the seconds of a fit and its scores"
_EXAMPLE = "docs/evidence/ACCURACY.md"


def write_comparison_page(results: Path, page: Path) -> None:
    """Write the tables of results, which have a folder per collection, into a page.

    A generated part is called COLLECTION/TABLE, such as ``dev/clean_k3``, with the mean AUC of
    each table of data in ``dev/clean_k3_tables``, and what was run in ``dev/run``. ``dev/short``
    has the best methods for some k, ``dev/short_odd`` and ``dev/short_even`` on every other table
    by name, and ``dev/seconds`` is a figure of accuracy against time, kept beside the page. ADGym's
    are ``adgym/labels_5`` and alike, and ``adgym/check`` says what naive Bayes shows. ``parts/dev``
    and ``parts/dev_labels`` come from parts.csv beside the results. ``overview`` has a line for
    each situation that users meet. Only short tables and the overview are open; readers unfold the
    others. Tables of the collections that the page shows are written to COLLECTION/tables too.
    """
    known = (*N_DRAWS, ADGYM)
    folders = sorted({path.parent for name in known for path in results.glob(f"*/{name}.csv")})
    if not folders:
        raise UserError(
            f"Results must be a folder with a folder for each collection of tables, and in it "
            f"{', '.join(f'{name}.csv' for name in known)}; got {results}. "
            "Run: fewlier-bench compare"
        )
    lines = parts_tables.read_lines(results.parent / _PARTS)
    collections = dict.fromkeys([f.name for f in folders] + [line["collection"] for line in lines])
    of_parts = [f"parts/{name}" for name in parts_tables.table_names(list(collections))]
    names = [f"{folder.name}/{part}" for folder in folders for part in _parts(folder)]
    text = read_page(page, [*names, *of_parts, _OVERVIEW], _EXAMPLE)
    blocks = dict.fromkeys([*of_parts, _OVERVIEW], EMPTY)
    for table in parts_tables.part_tables(lines):
        blocks[f"parts/{table.name}"] = to_folded(table)
    if f": {_OVERVIEW} " in text:
        blocks[_OVERVIEW] = to_markdown(overview_table(results))
    for folder in (folder for folder in folders if f": {folder.name}/" in text):
        has_figure = f": {folder.name}/{_SECONDS} " in text
        parts = _write_tables(folder, page if has_figure else None)
        blocks |= {f"{folder.name}/{name}": content for name, content in parts.items()}
    write_text(page, fill(text, blocks))


def _write_tables(folder: Path, page: Path | None) -> dict[str, str]:
    """Write the tables of a collection, and a figure beside the page; return the parts by name."""
    found = {experiment: Store(folder).read(experiment) for experiment in _experiments(folder)}
    parts = dict.fromkeys(_parts(folder), EMPTY) | {_RUN: describe_run(found)}
    if ADGYM in found:
        parts[_CHECK] = to_list([describe_check(found[ADGYM])])
    if page is not None:
        parts[_SECONDS] = _draw(found[CLEAN], page, folder.name)
    for experiment, rows in found.items():
        for table in _tables(experiment, rows):
            parts[table.name] = _shown(table)
            write_text(folder / "tables" / f"{table.name}.csv", to_csv(table))
    return parts


def _shown(table: PrintedTable) -> str:
    return to_markdown(table) if table.name == comparison_tables.SHORT else to_folded(table)


def _experiments(folder: Path) -> tuple[str, ...]:
    return (ADGYM,) if Store(folder).path(ADGYM).exists() else tuple(N_DRAWS)


def _parts(folder: Path) -> list[str]:
    """Return the names of the generated parts of one collection."""
    if _experiments(folder) == (ADGYM,):
        return [_RUN, _CHECK, *adgym_tables.table_names()]
    names = [f"{experiment}_k{k}" for experiment, draws in N_DRAWS.items() for k in draws]
    short = [f"{comparison_tables.SHORT}{half}" for half in comparison_tables.HALVES]
    return [_RUN, *names, *(f"{name}_tables" for name in names), *short, _SECONDS]


def _draw(rows: Sequence[Result], page: Path, collection: str) -> str:
    """Draw accuracy against time beside the page; return what the page shows."""
    from fewlier_bench.comparison.comparison_figure import (
        describe_seconds,
        draw_accuracy_by_seconds,
    )
    from fewlier_bench.pages.drawing import save

    if not any(row.k == 3 and row.auc is not None for row in rows):
        return EMPTY
    save(draw_accuracy_by_seconds(rows), page.parent / _FIGURES, f"{collection}_seconds")
    image = f"![{_CAPTION}]({_FIGURES.as_posix()}/{collection}_seconds.svg)"
    return f"{image}\n\n{describe_seconds(rows)}"


def _tables(experiment: str, rows: Sequence[Result]) -> Iterator[PrintedTable]:
    if experiment == ADGYM:
        yield from adgym_tables.all_tables(rows)
        return
    if experiment == CLEAN:
        yield from comparison_tables.short_tables(rows)
    yield from comparison_tables.summary_tables(rows, experiment)
    yield from comparison_tables.detail_tables(rows, experiment)
