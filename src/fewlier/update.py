"""Training on from a fitted model, when more rows are labelled."""

from dataclasses import replace

from fewlier.fit import Recipe, fit_members
from fewlier.score.model import FittedModel
from fewlier.training.history import MemberHistory
from fewlier.training.roles import Plan
from fewlier.training.stack import OnEpoch, Parameters, no_news

# From a good start few epochs are needed; chosen on labelled tables, see docs/METHOD.md.
MAX_EPOCHS = 20


def update_model(
    model: FittedModel, plan: Plan, recipe: Recipe, on_epoch: OnEpoch = no_news
) -> tuple[FittedModel, tuple[MemberHistory, ...]]:
    """Train every lambda on from the model's nearest member, and select and calibrate anew.

    The last epoch counts (see `Member`); validation rows only weigh the members.
    """
    epochs = min(recipe.settings.max_epochs, MAX_EPOCHS)
    settings = replace(recipe.settings, max_epochs=epochs, patience=None)
    members = [
        (fold, replace(member, start=_start(model, fold, member.lam)))
        for fold, member in plan.members(recipe.lambdas)
    ]
    quick = replace(recipe, settings=settings)
    ((fitted, history),) = fit_members([plan], [model.density], [members], quick, on_epoch)
    return replace(fitted, reference=model.reference), history


def _start(model: FittedModel, fold: int, lam: float) -> Parameters:
    """Return the parameters of the member of this fold, if it has one, whose lambda is nearest."""
    nearest = min(model.members, key=lambda member: (member.fold != fold, abs(member.lam - lam)))
    return dict(nearest.density.named_parameters())
