"""The page of the few-label comparison: its tables come from folders of results."""

from pathlib import Path

from fewlier.errors import UserError
from fewlier_bench.comparison.comparison_tables import detail_tables, summary_tables
from fewlier_bench.data.few_labels import N_DRAWS
from fewlier_bench.pages.blocks import EMPTY, fill, read_page, write_text
from fewlier_bench.pages.footnotes import describe_run
from fewlier_bench.pages.rendering import to_csv, to_markdown
from fewlier_bench.runs.results import Store

_RUN = "run"
_EXAMPLE = "docs/ACCURACY.md"


def write_comparison_page(results: Path, page: Path) -> None:
    """Write the tables of results, which have a folder per collection, into a page.

    A generated part is called COLLECTION/TABLE, such as ``dev/clean_k3``, with the mean AUC of
    each table of data in ``dev/clean_k3_tables``, and what was run in ``dev/run``. Tables are
    written to COLLECTION/tables too.
    """
    folders = sorted({path.parent for name in N_DRAWS for path in results.glob(f"*/{name}.csv")})
    if not folders:
        raise UserError(
            f"Results must be a folder with a folder for each collection of tables, and in it "
            f"{', '.join(f'{name}.csv' for name in N_DRAWS)}; got {results}. "
            "Run: fewlier-bench compare"
        )
    text = read_page(page, [f"{f.name}/{part}" for f in folders for part in _parts()], _EXAMPLE)
    blocks: dict[str, str] = {}
    for folder in folders:
        found = {experiment: Store(folder).read(experiment) for experiment in N_DRAWS}
        parts = dict.fromkeys(_parts(), EMPTY) | {_RUN: describe_run(found)}
        for experiment, rows in found.items():
            for table in (*summary_tables(rows, experiment), *detail_tables(rows, experiment)):
                parts[table.name] = to_markdown(table)
                write_text(folder / "tables" / f"{table.name}.csv", to_csv(table))
        blocks |= {f"{folder.name}/{name}": content for name, content in parts.items()}
    write_text(page, fill(text, blocks))


def _parts() -> list[str]:
    """Return the names of the generated parts of one collection."""
    names = [f"{experiment}_k{k}" for experiment, draws in N_DRAWS.items() for k in draws]
    return [_RUN, *names, *(f"{name}_tables" for name in names)]
