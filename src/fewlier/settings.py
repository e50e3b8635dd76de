"""What the parameters of a detector mean: checked, and turned into a recipe and a schema."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state

from fewlier.arrays import Bools
from fewlier.decision.calibration import check_share
from fewlier.density import DENSITIES
from fewlier.density.base import FLOWS, Architecture
from fewlier.density.conditionals import CONDITIONALS
from fewlier.errors import ParameterError, UserError
from fewlier.fit import Recipe
from fewlier.table import Column, Kind, Schema, Table, infer_schema
from fewlier.table.columns import USUAL
from fewlier.table.declarations import IGNORE
from fewlier.training.stack import Settings

DEVICES = ("auto", "cpu", "cuda")
MAX_COLUMNS = 20_000
"""Of a table to learn from; a model file has room for few more."""
LARGEST_SEED = 2**32 - 1
"""Of `random_state`, as numpy takes it."""
LARGEST = 2**31 - 1
"""Of all other integers, as model files hold them."""

_SIZES = ("n_orderings", "n_masks", "latent", "n_samples", "n_transforms")
_POSITIVE = f"an integer from 1 to {LARGEST}"
_COUNTS = ("n_components", "max_epochs", "batch_size", *_SIZES)


def read_recipe(parameters: Mapping[str, Any]) -> Recipe:
    """Check the parameters of an `AnomalyDetector` and say how it is to be fitted."""
    density, selection = parameters["density"], parameters["selection"]
    lambdas = _read_sequence("lambdas", parameters["lambdas"])
    patience, rate = parameters["patience"], parameters["learning_rate"]
    unlabelled = parameters["unlabelled"]
    is_known = isinstance(density, str) and density in DENSITIES
    _check("density", density, is_known, f"one of {sorted(DENSITIES)}")
    _check("selection", selection, selection in ("average", "best"), "'average' or 'best'")
    is_known = isinstance(unlabelled, str) and unlabelled in ("robust", "normal")
    _check("unlabelled", unlabelled, is_known, "'robust' or 'normal'")
    are_finite = len(lambdas) > 0 and all(_is_number(lam) and lam >= 0 for lam in lambdas)
    _check("lambdas", lambdas, are_finite, "finite numbers >= 0, at least one")
    for name in _COUNTS:
        _check(name, parameters[name], _is_positive(parameters[name]), _POSITIVE)
    is_patience = patience is None or _is_positive(patience)
    _check("patience", patience, is_patience, f"{_POSITIVE}, or None")
    _check("learning_rate", rate, _is_number(rate) and rate > 0, "a positive number")
    _check("memory", parameters["memory"], isinstance(parameters["memory"], bool), "True or False")
    check_share("false_alarm_rate", parameters["false_alarm_rate"])
    return Recipe(
        density,
        selection,
        tuple(map(float, lambdas)),
        parameters["n_components"],
        _read_architecture(parameters),
        Settings(
            parameters["max_epochs"],
            patience,
            parameters["batch_size"],
            rate,
            "auc" if selection == "best" else "smooth_auc",
        ),
        unlabelled,
        _read_device(parameters["device"]),
    )


def _read_architecture(parameters: Mapping[str, Any]) -> Architecture:
    hidden, flow = parameters["hidden"], parameters["flow"]
    if hidden is None:
        hidden = DENSITIES[parameters["density"]].default_hidden
    hidden = _read_sequence("hidden", hidden)
    _check(
        "hidden", hidden, all(map(_is_positive, hidden)), f"integers from 1 to {LARGEST}, or None"
    )
    _check("flow", flow, isinstance(flow, str) and flow in FLOWS, f"one of {FLOWS}")
    return Architecture(hidden, flow=flow, **{name: parameters[name] for name in _SIZES})


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
    """Infer the columns of a table, and score those as the user chose by `conditionals`.

    `is_normal` are the rows that are not labelled anomalies; None: all. `problems` are what is
    wrong with columns already.
    """
    if len(table.names) > MAX_COLUMNS:
        raise UserError(
            f"A table must have at most {MAX_COLUMNS:,} columns to learn from; got "
            f"{len(table.names):,}. Leave out those that say little of anomalies."
        )
    columns = parameters["columns"]
    is_choice = columns is None or isinstance(columns, str | Mapping)
    _check("columns", columns, is_choice, "a kind, or a mapping of columns to kinds")
    schema = infer_schema(table, columns, is_normal, problems)
    conditionals = parameters["conditionals"]
    if not conditionals:
        return schema
    is_mapping = isinstance(conditionals, Mapping)
    _check("conditionals", conditionals, is_mapping, "a mapping of columns or kinds")
    known = {*schema.names, *(kind.value for kind in Kind)}
    for key, name in conditionals.items():
        _check("conditionals", key, key in known, "named by columns or kinds")
        choices = f"one of {sorted(CONDITIONALS)}"
        _check(f"conditionals[{key!r}]", name, name in CONDITIONALS, choices)
    chosen = [_chosen(conditionals, column) for column in schema.columns]
    declared = {
        column.name: (CONDITIONALS[name].coding if name else column.coding).value
        for column, name in zip(schema.columns, chosen, strict=True)
    }
    recoded = infer_schema(schema.match(table), declared, is_normal).columns
    columns = tuple(
        replace(c, form=found.form, date=found.date, conditional=_unusual(name))
        for c, found, name in zip(recoded, schema.columns, chosen, strict=True)
    )
    return replace(schema, columns=columns)


def _unusual(conditional: str | None) -> str | None:
    """Return the name of a conditional, or None where it is the usual one of its coding."""
    is_usual = conditional is None or conditional == USUAL[CONDITIONALS[conditional].coding]
    return None if is_usual else conditional


def _chosen(conditionals: Mapping[str, str], column: Column) -> str | None:
    """Return the conditional that a user chose for a column, or for columns of its kind.

    A column that hardly varies is not one of its kind in this: no curve can be learned of it.
    """
    by_kind = None if column.hardly_varies else conditionals.get(column.kind.value)
    return conditionals.get(column.name) or by_kind


def read_seed(random_state: int | np.random.RandomState | None) -> int:
    """Draw the seed of a fit: an integer always gives the same."""
    if isinstance(random_state, Integral):
        is_seed = 0 <= random_state <= LARGEST_SEED
        _check("random_state", random_state, is_seed, f"an integer from 0 to {LARGEST_SEED}")
    return int(check_random_state(random_state).randint(2**31 - 1))


def available_device(name: str) -> torch.device:
    """Return the device that a parameter asks for, or the CPU on a machine without a GPU."""
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def _read_device(name: str) -> torch.device:
    _check("device", name, name in DEVICES, "'auto', 'cpu' or 'cuda'")
    if name == "cuda" and not torch.cuda.is_available():
        raise ParameterError(
            "device='cuda' needs a GPU that torch can use; got none. Give device='auto'."
        )
    return available_device(name)


def _read_sequence(name: str, value: Iterable[Any]) -> tuple[Any, ...]:
    is_sequence = isinstance(value, Iterable) and not isinstance(value, str)
    _check(name, value, is_sequence, "a sequence of numbers, such as (100,)")
    return tuple(value)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


def _is_positive(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and 0 < int(value) <= LARGEST


def _check(name: str, value: object, is_right: bool, expected: str) -> None:
    if not is_right:
        raise ParameterError(
            f"The {name!r} parameter of AnomalyDetector must be {expected}; got {value!r}."
        )
