"""Detectors on several splits of one table, trained together as one stack.

Only this module knows how fewlier plans and fits: the others hand it rows and get models.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt
import torch

from fewlier import AnomalyDetector
from fewlier.density.base import Density
from fewlier.density.rows import Rows as EncodedRows
from fewlier.fitting.fit import Recipe, add_parts, build, judge, make_template, select
from fewlier.fitting.recipe import read_recipe, read_schema
from fewlier.score.ensemble import Ensemble
from fewlier.score.model import FittedModel
from fewlier.table import Encoded, Schema, Table
from fewlier.training.folds import Fold
from fewlier.training.history import MemberHistory
from fewlier.training.plan import Plan, make_plan, plan_with_validation
from fewlier.training.stack import Member, Trained, train
from fewlier_bench.data.few_labels import FewLabelSplit

Rows: TypeAlias = npt.NDArray[np.int64]
Labels: TypeAlias = npt.NDArray[np.int8]
Fit: TypeAlias = tuple[FittedModel, tuple[MemberHistory, ...]]
FitOfEachLambda: TypeAlias = tuple[dict[float, FittedModel], tuple[MemberHistory, ...]]


@final
@dataclass(frozen=True, eq=False)
class GivenRows:
    """What a detector is given: row numbers, their labels, and its seed.

    `validation`, if there is one, holds the row numbers and labels to validate on. Without it the
    detector holds back rows of its own choice.
    """

    rows: Rows
    labels: Labels
    seed: int
    validation: tuple[Rows, Labels] | None = None


def given_rows(split: FewLabelSplit) -> GivenRows:
    """Return what a split of the comparison gives to a detector."""
    return GivenRows(split.given, split.labels, split.number)


@final
@dataclass(frozen=True, eq=False)
class SplitStack:
    """A table, and how a detector is fitted on some of its rows."""

    recipe: Recipe
    schema: Schema
    table: Table

    @classmethod
    def of_table(cls, table: Table, parameters: Mapping[str, Any]) -> "SplitStack":
        """Read the kinds of columns once, from all rows, so that all splits have the same."""
        checked = AnomalyDetector(**parameters).get_params()
        schema = read_schema(checked, table)
        return cls(read_recipe(checked), schema, schema.match(table))

    @property
    def gpu(self) -> str | None:
        """The name of the GPU that trains, None for the CPU."""
        return torch.cuda.get_device_name() if self.recipe.device.type == "cuda" else None

    def fit(self, splits: Sequence[GivenRows]) -> list[Fit]:
        """Fit a model on each split, with the history of its members."""
        plans = [self.plan(split) for split in splits]
        return [fit for group in _same_layout(plans) for fit in fit_plans(group, self.recipe)]

    def fit_each_lambda(self, splits: Sequence[GivenRows]) -> list[FitOfEachLambda]:
        """Fit a model of each lambda on each split; a lambda that diverged has none."""
        return fit_each_lambda([self.plan(split) for split in splits], self.recipe)

    def score(self, model: FittedModel, rows: Rows) -> npt.NDArray[np.float64]:
        """Return the anomaly scores of some rows of the table."""
        return model.score(model.encode(self.table.take(rows)))

    def free_memory(self) -> None:
        """Give the GPU's memory back: torch would keep it from other processes."""
        if self.gpu:
            torch.cuda.empty_cache()

    def plan(self, split: GivenRows) -> Plan:
        """Give the rows of a split their roles in a fit."""
        given, recipe = (self.table.take(split.rows), split.labels), self.recipe
        if split.validation is None:
            return make_plan(self.schema, given, recipe.selection, split.seed, recipe.unlabelled)
        rows, labels = split.validation
        held_back = self.table.take(rows), labels
        return plan_with_validation(self.schema, given, held_back, split.seed, recipe.unlabelled)


def fit_plans(plans: Sequence[Plan], recipe: Recipe) -> list[Fit]:
    """Fit every plan, all of their members as one stack; each comes out as if fitted alone.

    The plans' tables must have the same columns, with the same codings, levels and columns that
    may be missing: all members share the constants of the first plan's conditionals (units and
    means), which shift log p but hardly rank rows.
    """
    return [build(*trained, recipe) for trained in _train(plans, recipe)]


def fit_each_lambda(plans: Sequence[Plan], recipe: Recipe) -> list[FitOfEachLambda]:
    """Fit plans of one fold as one stack, and keep the model of every lambda at its best epoch.

    The history is that of a fit by the paper's rule: the lambda it keeps is the one of weight 1.
    A lambda whose member diverged has no model.
    """
    found = []
    for plan, template, trained in _train(plans, recipe):
        judged = [judge(plan, template, one, i, recipe) for i, one in enumerate(trained)]
        models = {
            one.lam: add_parts(
                plan, Ensemble((one,), (1.0,), recipe.selection), recipe.false_alarm_rate
            )
            for one, _ in judged
            if one is not None
        }
        lines = tuple(line for _, line in judged)
        found.append((models, select(lines, plan, recipe.selection) if models else lines))
    return found


def _train(
    plans: Sequence[Plan], recipe: Recipe
) -> Iterator[tuple[Plan, Density, Sequence[Trained]]]:
    """Train the members of all plans as one stack, and yield each plan with its own."""
    templates = [make_template(plans[0].encoder, recipe, plan.seed) for plan in plans]
    members = [plan.members(recipe.lambdas) for plan in plans]
    rows = EncodedRows.of(
        reduce(Encoded.followed_by, [plan.encoded for plan in plans]), recipe.device
    )
    starts = np.cumsum([0] + [len(plan.encoded) for plan in plans[:-1]]).tolist()
    # A single plan's own structure is the template's, and shared masks are faster.
    drawn = [template.drawn() if len(plans) > 1 else None for template in templates]
    stack = [
        replace(_shifted(member, start), drawn=own)
        for start, own, group in zip(starts, drawn, members, strict=True)
        for member in group
    ]
    doubtful = torch.from_numpy(np.concatenate([plan.doubtful for plan in plans]))
    on_device = doubtful.to(recipe.device) if doubtful.any() else None
    trained = iter(train(templates[0], rows, stack, recipe.settings, doubtful=on_device))
    for plan, template, group in zip(plans, templates, members, strict=True):
        yield plan, template, [replace(next(trained), member=member) for member in group]


def _shifted(member: Member, start: int) -> Member:
    """Return the member with its rows counted in the concatenated table."""
    return replace(member, rows=Fold(*(rows + start for rows in vars(member.rows).values())))


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
