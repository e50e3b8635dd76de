"""Match rows to a schema and report mismatches."""

from collections.abc import Callable

from fewlier.errors import LeftOutWarning, UserError, declaration, raise_all, warn
from fewlier.process.escape import list_some
from fewlier.table.declarations import IGNORE
from fewlier.table.frame import Table, has_names, unread_note
from fewlier.table.inference import IGNORED
from fewlier.table.schema import Schema


def match_rows(X: object, schema: Schema, *, was_named: bool) -> Table:
    """Read rows to score; columns are matched by position where either table has no names."""
    is_named = has_names(X)
    problems: dict[str, UserError] = {}
    table = Table.of(X, problems=problems)
    if is_named != was_named:
        state, was = ("has", "without") if is_named else ("does not have valid", "with")
        warn(f"X {state} feature names, but AnomalyDetector was fitted {was} feature names")
    if not is_named or not was_named:
        names, table = table.names, _by_position(table, schema)
        renamed = dict(zip(names, table.names, strict=True))
        problems = {renamed[name]: problem for name, problem in problems.items()}
    left_out = {left.name for left in schema.left_out}
    raise_all([problem for name, problem in problems.items() if name not in left_out])
    return match_noting_unread(table, schema)


def match_noting_unread(
    table: Table, schema: Schema, place: Callable[[int], str] = str, *, is_whole: bool = True
) -> Table:
    """Return a table in the form of a schema, and warn of cells that could not be read.

    `place` says where a row is; rows that are not the whole table are called the kept ones.
    """
    matched = schema.match(table)
    if matched.unread:
        warn(("" if is_whole else "of the kept rows, ") + unread_note(matched.unread, place))
    return matched


def _by_position(table: Table, schema: Schema) -> Table:
    """Give the columns of a table the names of training; those left out then may be absent."""
    for names in (schema.given, schema.sources):
        if len(table.names) == len(names):
            return table.renamed(names)
    raise UserError(
        f"X has {len(table.names)} features, but AnomalyDetector is expecting {len(schema.given)} "
        f"features as input. Give the columns of training: {', '.join(schema.given[:5])}, ..."
    )


def warn_of_left_out(schema: Schema) -> None:
    """Name the columns that were left out without the user saying so."""
    left = {name: f"{name!r} ({why})" for name, _, why in schema.left_out if why != IGNORED}
    if left:
        first = next(iter(left))
        warn(
            f"Left out: {list_some(left.values())}. Keep a column with "
            f"{declaration(first, 'category')}, or silence this with {declaration(first, IGNORE)}.",
            LeftOutWarning,
        )
