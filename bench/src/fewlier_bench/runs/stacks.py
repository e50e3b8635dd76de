"""Detectors on several splits of one table, trained together as one stack."""

from collections.abc import Mapping, Sequence
from typing import Any

from fewlier.detector import AnomalyDetector
from fewlier.fit import fit_models
from fewlier.score.model import FittedModel
from fewlier.settings import read_recipe, read_schema
from fewlier.table import Schema, Table
from fewlier.training.roles import Plan, make_plan
from fewlier_bench.data.few_labels import Split


def fit_splits(
    table: Table, parameters: Mapping[str, Any], splits: Sequence[Split]
) -> list[FittedModel]:
    """Fit a detector with these parameters on the rows that each split gives.

    The kinds of columns are read once, from all rows, so that all splits have the same.
    """
    parameters = AnomalyDetector(**parameters).get_params()
    recipe, schema = read_recipe(parameters), read_schema(parameters, table)
    matched = schema.match(table)
    plans = [
        make_plan(
            schema,
            matched.take(split.given),
            split.labels,
            recipe.selection,
            split.number,
            recipe.unlabelled,
        )
        for split in splits
    ]
    return [model for group in _same_layout(plans) for model, _ in fit_models(group, recipe)]


def _same_layout(plans: Sequence[Plan]) -> list[list[Plan]]:
    """Keep plans together while their encoders have the same inputs."""
    groups: list[list[Plan]] = []
    for plan in plans:
        if groups and _layout(groups[-1][-1]) == _layout(plan):
            groups[-1].append(plan)
        else:
            groups.append([plan])
    return groups


def _layout(plan: Plan) -> tuple[Schema, list[bool]]:
    """Return the columns with their levels, and which of them may miss cells."""
    return plan.encoder.schema, plan.encoder.missable.tolist()
