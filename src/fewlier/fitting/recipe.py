"""What the parameters of a detector mean: checked, and turned into a recipe and a schema."""

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state

from fewlier.decision.threshold import check_share
from fewlier.density import read_density
from fewlier.density.conditionals import CONDITIONALS
from fewlier.errors import UserError, check_parameter, parameter
from fewlier.fitting.fit import Recipe
from fewlier.table import Column, Schema, Table, infer_schema
from fewlier.table.arrays import Bools
from fewlier.table.columns import USUAL
from fewlier.table.declarations import IGNORE, StandIns
from fewlier.training.settings import read_training

DEVICES = ("auto", "cpu", "cuda")
MAX_COLUMNS = 20_000
"""Most columns of a training table."""
MAX_SEED = 2**32 - 1
"""Largest `random_state`, as numpy takes it."""


def read_recipe(parameters: Mapping[str, Any]) -> Recipe:
    """Check the parameters of an `AnomalyDetector` and say how it is to be fitted."""
    density, selection = read_density(parameters["density"]), parameters["selection"]
    training, unlabelled = read_training(parameters["training"]), parameters["unlabelled"]
    check_parameter("selection", selection, selection in ("average", "best"), "'average' or 'best'")
    is_known = isinstance(unlabelled, str) and unlabelled in ("robust", "normal")
    check_parameter("unlabelled", unlabelled, is_known, "'robust' or 'normal'")
    keep_rows = parameters["keep_rows"]
    check_parameter("keep_rows", keep_rows, isinstance(keep_rows, bool), "True or False")
    check_share("false_alarm_rate", parameters["false_alarm_rate"])
    StandIns.read(parameters.get("missing"))
    return Recipe(
        density,
        selection,
        tuple(training.lambdas),
        training.settings(selection),
        unlabelled,
        _read_device(parameters["device"]),
        float(parameters["false_alarm_rate"]),
    )


def ignored_columns(columns: object) -> list[str]:
    """Name the columns that a detector's parameter `columns` declares to be left out."""
    return (
        [n for n, said in columns.items() if said == IGNORE] if isinstance(columns, Mapping) else []
    )


def read_schema(
    parameters: Mapping[str, Any],
    table: Table,
    is_normal: Bools | None = None,
    problems: Mapping[str, UserError] | None = None,
) -> Schema:
    """Infer the columns of a table, as the user declared them.

    `is_normal` are the rows that are not labelled anomalies; None: all. `problems` are what is
    wrong with columns already.
    """
    if len(table.names) > MAX_COLUMNS:
        raise UserError(
            f"A table must have at most {MAX_COLUMNS:,} columns to learn from; got "
            f"{len(table.names):,}. Leave out uninformative ones."
        )
    columns = parameters["columns"]
    is_choice = columns is None or isinstance(columns, str | Mapping)
    check_parameter("columns", columns, is_choice, "a kind, or a mapping of columns to kinds")
    everywhere = isinstance(columns, str)
    kinds, chosen = split_conditionals({"": columns} if everywhere else columns or {})
    overrides, stand_ins = (
        kinds[""] if everywhere else kinds,
        StandIns.read(parameters.get("missing")),
    )
    schema = infer_schema(table, overrides, is_normal, problems, stand_ins)
    scored = (replace(c, conditional=_conditional_of(c, chosen)) for c in schema.columns)
    return replace(schema, columns=tuple(scored)) if chosen else schema


def split_conditionals(columns: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return what is declared of columns with kinds for distributions, and the distributions.

    ``{"visits": "poisson"}`` declares that visits are counts, and which of the distributions of
    counts scores them; ``"poisson:1.234"`` says in addition how the numbers are written.
    """
    kinds, chosen = dict(columns), {}
    for column, said in columns.items():
        word, colon, form = said.partition(":") if isinstance(said, str) else ("", "", "")
        if word in CONDITIONALS:
            chosen[column] = word
            kinds[column] = CONDITIONALS[word].coding.value + colon + form
    return kinds, chosen


def _conditional_of(column: Column, chosen: Mapping[str, str]) -> str | None:
    """Return the conditional chosen for a column, or None where it is the usual one."""
    usual = USUAL[column.coding]
    name = chosen.get(column.name, chosen.get("", usual))
    is_own = name != usual and CONDITIONALS[name].coding is column.coding
    return name if is_own else None


def read_seed(random_state: int | np.random.RandomState | None) -> int:
    """Draw the seed of a fit: an integer always gives the same."""
    if isinstance(random_state, Integral):
        is_seed = 0 <= random_state <= MAX_SEED
        check_parameter("random_state", random_state, is_seed, f"an integer from 0 to {MAX_SEED}")
    return int(check_random_state(random_state).randint(2**31 - 1))


def available_device(name: str) -> torch.device:
    """Return the device that a parameter asks for, or the CPU on a machine without a GPU."""
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def _read_device(name: str) -> torch.device:
    check_parameter("device", name, name in DEVICES, "'auto', 'cpu' or 'cuda'")
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError(
            f"{parameter('device', 'cuda')} needs a GPU that torch can use; got none. Give "
            f"{parameter('device', 'auto')}.",
            parameter="device",
        )
    return available_device(name)
