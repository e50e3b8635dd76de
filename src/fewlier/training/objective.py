"""The paper's objective, and the criterion that members are judged by, on log p alone."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Criterion = Literal["auc", "smooth_auc"]


def pair_mean(
    pairs: Float[Tensor, "*m a n"],
    normal_weight: Float[Tensor, "*m n"],
    anomaly_weight: Float[Tensor, "*m a"],
) -> Float[Tensor, "*m"]:
    """Return the weighted mean over (anomaly, normal) pairs; zero where there is no pair.

    Weights of zero leave rows out, so that members with different numbers of rows can share one
    tensor.
    """
    over_normals = (pairs * normal_weight.unsqueeze(-2)).sum(-1)
    total = normal_weight.sum(-1) * anomaly_weight.sum(-1)
    return (over_normals * anomaly_weight).sum(-1) / torch.where(total > 0, total, 1)


def mean_log_p(normal: Float[Tensor, "*m n"], weight: Float[Tensor, "*m n"]) -> Float[Tensor, "*m"]:
    """Return the weighted mean of log p; zero where no row counts."""
    total = weight.sum(-1)
    return (normal * weight).sum(-1) / torch.where(total > 0, total, 1)


def likelihood_gap(
    normal: Float[Tensor, "*m n"], anomaly: Float[Tensor, "*m a"]
) -> Float[Tensor, "*m a n"]:
    """Return log p(normal) - log p(anomaly) of every pair."""
    return normal.unsqueeze(-2) - anomaly.unsqueeze(-1)


def objective(
    normal: Float[Tensor, "*m n"],
    anomaly: Float[Tensor, "*m a"],
    normal_weight: Float[Tensor, "*m n"],
    anomaly_weight: Float[Tensor, "*m a"],
    lam: Float[Tensor, "*m"],
    likelihood_weight: Float[Tensor, "*m n"] | None = None,
) -> Float[Tensor, "*m"]:
    r"""Return L = mean log p(normal) + lambda * mean sigmoid(log p(normal) - log p(anomaly)).

    To be maximised; Iwata & Yamanaka (2019), Eq. 7. The second term is a smooth AUC. With
    lambda = 0 or without anomalies it is the log likelihood.

    Unlabelled rows are among the normals. The first mean may weigh them by how far they are
    trusted, L = sum w log p / sum w + ...; the second takes them as they are, because the AUC of
    anomalies against a pool with hidden anomalies is linear in that against normals.

    Parameters
    ----------
    normal, anomaly : tensors (m, n), (m, a)
        log p of the normal and of the anomalous rows of each member.
    normal_weight, anomaly_weight : tensors of the same shapes
        1 for a row that counts, 0 for padding.
    lam : tensor (m,)
        Weight of the ranking term.
    likelihood_weight : tensor (m, n) or None
        Weights of the normals in the first mean, if other than in the second.
    """
    weight = normal_weight if likelihood_weight is None else likelihood_weight
    ranking = torch.sigmoid(likelihood_gap(normal, anomaly))
    return mean_log_p(normal, weight) + lam * pair_mean(ranking, normal_weight, anomaly_weight)


def criterion(
    normal: Float[Tensor, "m n"],
    anomaly: Float[Tensor, "m a"],
    normal_weight: Float[Tensor, "m n"],
    anomaly_weight: Float[Tensor, "m a"],
    *,
    name: Criterion,
    likelihood_weight: Float[Tensor, "m n"] | None = None,
) -> Float[Tensor, " m"]:
    """Judge members by log p of their validation rows; higher is better.

    By AUC or its smooth version, against labelled and unlabelled rows alike; by the likelihood of
    the normals, weighted if asked for, where no anomaly is held out.
    """
    gap = likelihood_gap(normal, anomaly)
    # The sign of NaN is 0 in torch: a member gone astray would have an AUC of 1/2.
    steps = torch.where(gap.isnan(), gap, (torch.sign(gap) + 1) / 2)
    pairs = torch.sigmoid(gap) if name == "smooth_auc" else steps
    ranking = pair_mean(pairs, normal_weight, anomaly_weight)
    weight = normal_weight if likelihood_weight is None else likelihood_weight
    likelihood = mean_log_p(normal, weight)
    return torch.where(anomaly_weight.sum(-1) > 0, ranking, likelihood)
