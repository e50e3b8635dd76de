"""`Trees` and `Rules`: the two parts of the score that are learned from the labels."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from fewlier.score.learned.nodes import Nodes
from fewlier.score.learned.steps import Rule, Steps
from fewlier.score.learned.supervised import Bag, Supervised
from fewlier.score.shares import learned

# Rules of a bag, and how much of each counts before the next is learned.
_N_RULES, _RATE = 30, 0.15


@final
@dataclass(frozen=True, eq=False)
class Trees(Supervised):
    """A tree for each bag, which splits by columns in combination: the share of anomalies."""

    name: ClassVar[str] = "trees"
    kind: ClassVar[type[Nodes]] = Nodes
    n_bags: ClassVar[int] = 60
    n_drawn: ClassVar[int] = 128

    @property
    def meaning(self) -> str:
        """What its contributions mean."""
        return (
            "how much the column makes the trees, which learned from the labels, take the row for "
            "an anomaly"
        )

    @classmethod
    def share(cls, n_anomalies: int) -> float:
        """Return half of what the labels take."""
        return learned(n_anomalies) / (2 - learned(n_anomalies))  # of what the rules leave

    @classmethod
    def learn(cls, bags: Iterable[Bag], n_features: int, device: torch.device) -> Nodes:  # noqa: ARG003
        """Grow trees."""
        from sklearn.tree import DecisionTreeClassifier  # here, because a score needs none of it

        grown = []
        for x, y, weight, seed in bags:
            tree = DecisionTreeClassifier(min_samples_leaf=2, max_features=0.5, random_state=seed)
            # Its own check of the input takes longer than the tree.
            found = tree.fit(x, y, sample_weight=weight, check_input=False).tree_
            grown.append((found, found.value[:, 0, 1] / found.value[:, 0].sum(-1)))
        return Nodes.from_sklearn(grown, device)


@final
@dataclass(frozen=True, eq=False)
class Rules(Supervised):
    """Boosted rules of one threshold in one column each for every bag: their log odds.

    Columns add up, so that a rule which the labels taught does not hide what is odd in another.
    """

    name: ClassVar[str] = "rules"
    kind: ClassVar[type[Steps]] = Steps
    n_bags: ClassVar[int] = 6
    n_drawn: ClassVar[int] = 256

    @property
    def meaning(self) -> str:
        """What its contributions mean."""
        return (
            "how much the rules of one threshold in the column, learned from the labels, speak "
            "for an anomaly"
        )

    @classmethod
    def share(cls, n_anomalies: int) -> float:
        """Return half of what the labels take."""
        return learned(n_anomalies) / 2

    @classmethod
    def learn(cls, bags: Iterable[Bag], n_features: int, device: torch.device) -> Steps:
        """Boost rules."""
        return Steps.from_rules([_boost(bag) for bag in bags], n_features, device)


def _boost(bag: Bag) -> list[Rule]:
    """Return the rules of a bag."""
    from sklearn.ensemble import GradientBoostingClassifier  # here, as above

    boosted = GradientBoostingClassifier(
        max_depth=1,
        n_estimators=_N_RULES,
        learning_rate=_RATE,
        subsample=0.7,
        random_state=bag.seed,
    )
    boosted.fit(bag.x, bag.y, sample_weight=bag.weight)
    rules: list[Rule] = []
    for tree in (fitted.tree_ for fitted in boosted.estimators_[:, 0]):
        if tree.node_count == 3:  # else there was nothing to split
            below, above = _RATE * tree.value[1:, 0, 0]
            rules.append((int(tree.feature[0]), float(tree.threshold[0]), below, above))
    return rules
