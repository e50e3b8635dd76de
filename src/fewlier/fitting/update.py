"""Training on from a fitted model, when more rows are labelled."""

from dataclasses import replace

from fewlier.fitting.fit import Fitted, Recipe, build, train_members
from fewlier.process.progress import Progress, silent
from fewlier.score.model import FittedModel
from fewlier.training.roles import Plan
from fewlier.training.stack import Parameters

# From a good start few epochs are needed; chosen on labelled tables, see docs/METHOD.md.
MAX_EPOCHS = 20


def update_model(
    model: FittedModel, plan: Plan, recipe: Recipe, progress: Progress = silent
) -> Fitted:
    """Train every lambda on from the model's nearest member, then select and calibrate again.

    The last epoch counts (see `Member`); validation rows only weigh the members.
    """
    epochs = min(recipe.settings.max_epochs, MAX_EPOCHS)
    settings = replace(recipe.settings, max_epochs=epochs, patience=None)
    quick, template = replace(recipe, settings=settings), model.ensemble.density
    members = [
        replace(member, start=_start(model, member.fold, member.lam))
        for member in plan.members(recipe.lambdas)
    ]
    trained = train_members(plan, template, members, quick, progress)
    fitted, history = build(plan, template, trained, quick)
    return replace(fitted, reference=model.reference), history


def _start(model: FittedModel, fold: int, lam: float) -> Parameters:
    """Return the parameters of the member of this fold, if it has one, whose lambda is nearest."""
    members = model.ensemble.members
    nearest = min(members, key=lambda member: (member.fold != fold, abs(member.lam - lam)))
    return dict(nearest.density.named_parameters())
