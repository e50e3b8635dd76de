"""The only gradient step: one encoded table and a list of members, trained as a stack."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from fewlier.density.base import Density, mean_over_passes
from fewlier.density.missing_cells import row_log_p, substitutes_from
from fewlier.density.networks import denormals_as_zero
from fewlier.density.rows import Rows
from fewlier.process.progress import Progress, no_progress
from fewlier.process.threads import one_thread
from fewlier.table.arrays import Ints
from fewlier.training.adam import Adam
from fewlier.training.batches import Batches, Noise, Sample, n_steps, stacked_noise
from fewlier.training.folds import Fold
from fewlier.training.objective import criterion, objective
from fewlier.training.settings import Settings
from fewlier.training.unlabelled import fence_at, trim, trust

# Normals and passes that judge a member. Those that judge an epoch are fewer where epochs are
# short, so that it takes longer to train a member than to judge it.
MAX_VALIDATION_NORMALS = 2000
JUDGED_PER_STEP = 20
VALIDATION_PASSES = 3
# Members beyond this size train in a further stack, with the same results.
MAX_STACK_BYTES = 2**29

Parameters = dict[str, Tensor]
LikelihoodWeight = Callable[[Tensor, Tensor, Tensor], Tensor]


@final
@dataclass(frozen=True)
class Member:
    """One density to train: the weight of its ranking term, its fold, a seed, and its rows.

    `drawn` is what is random in its density's structure, in place of the template's.
    """

    lam: float
    fold: int
    seed: int
    rows: Fold
    drawn: Parameters | None = None


@final
@dataclass(frozen=True)
class Trained:
    """A member at its best epoch (the first is 1), with its validation criterion per epoch."""

    member: Member
    parameters: Parameters
    best_epoch: int
    curve: tuple[float, ...]

    @property
    def diverged(self) -> bool:
        """Whether its validation criterion ceased to be a finite number."""
        return not np.isfinite(self.curve).all()


@one_thread()
def train(
    density: Density,
    rows: Rows,
    members: Sequence[Member],
    settings: Settings,
    progress: Progress = no_progress,
    doubtful: Bool[Tensor, " rows"] | None = None,
) -> list[Trained]:
    """Train every member from the same template; each comes out as if trained alone.

    Parameters
    ----------
    density : Density
        The template: masks and conditionals, on the device to train on.
    rows : Rows
        The encoded table, on the same device; members name rows of it.
    members : sequence of Member
        What to train. Members that take the same number of steps share a stack.
    settings : Settings
        How to train.
    progress : callable
        Called at the start and after every epoch with the share of the epochs that is done.
    doubtful : tensor (rows,) or None
        Which of the rows may be hidden anomalies; None where none may.
    """
    density = copy.deepcopy(density)  # whoever scores with the template does not see it change
    groups = _group_members(density, members, settings)
    total = settings.max_epochs * len(groups)
    results: dict[int, Trained] = {}
    progress(0.0)
    for number, group in enumerate(groups):
        stack = _Stack(density, rows, [members[i] for i in group], settings, doubtful)
        with denormals_as_zero():
            for epoch in stack.epochs():
                progress((number * settings.max_epochs + epoch) / total)
        results.update(zip(group, stack.trained(), strict=True))
    return [results[i] for i in range(len(members))]


def bytes_to_train(density: Density, n_members: int) -> int:
    """Estimate the memory that training takes.

    Every member has its best weights, and ends with a copy of them. Each in the stack has six more
    arrays of that size: weights, masked weights, gradients, two moments and a step's results.
    """
    size = _n_bytes(density)
    n_at_once = min(n_members, max(1, MAX_STACK_BYTES // size))
    return size * (2 * n_members + 6 * n_at_once)


def _n_bytes(density: Density) -> int:
    return sum(p.numel() * p.element_size() for p in density.parameters())


def _group_members(
    density: Density, members: Sequence[Member], settings: Settings
) -> list[list[int]]:
    """Group members by steps per epoch, in stacks that fit in memory."""
    capacity = max(1, MAX_STACK_BYTES // _n_bytes(density))
    by_steps: dict[int, list[int]] = {}
    for i, member in enumerate(members):
        steps = n_steps(len(member.rows.normals), settings.batch_size, settings.max_steps)
        by_steps.setdefault(steps, []).append(i)
    return [
        group[start : start + capacity]
        for group in by_steps.values()
        for start in range(0, len(group), capacity)
    ]


@final
class _Stack:
    """Members in training: parameters with a leading member axis, and the best seen of each.

    A member runs until it has waited `patience` epochs for an improvement, or its criterion is no
    longer finite. What it would do afterwards is not looked at, so that it ends as if trained
    alone.
    """

    def __init__(
        self,
        density: Density,
        rows: Rows,
        members: Sequence[Member],
        settings: Settings,
        doubtful: Bool[Tensor, " rows"] | None,
    ) -> None:
        self.rows, self.settings, self.members = rows, settings, members
        self.doubtful = doubtful
        self.device = rows.targets.device
        self.is_complete = bool(rows.has_value.all())
        start = _initial(density, members, self.device)
        self.density = density.with_parameters(start, _drawn(members, self.device))
        self.optimizer = Adam(self.density.parameters(), settings.learning_rate)
        self.lam = torch.tensor([member.lam for member in members], device=self.device)
        self.batches = [
            Batches(
                m.rows.normals, m.rows.anomalies, settings.batch_size, m.seed, settings.max_steps
            )
            for m in members
        ]
        self.noise = [Noise(density.n_noise, member.seed) for member in members]
        n_judged = JUDGED_PER_STEP * settings.max_steps
        self.validation = Sample.of(
            [validation_normals(member)[:n_judged] for member in members],
            [member.rows.validation_anomalies for member in members],
        ).to(self.device)
        # Drawn once, so that epochs are compared on the same noise, and for each row, so that it
        # averages out; the noise that scoring uses is the same for all rows.
        n_passes = min(VALIDATION_PASSES, density.n_passes)
        self.validation_noise = [
            stacked_noise(self.noise, self.validation) for _ in range(n_passes)
        ]
        self.best = _Best(self.density, len(members), keep_last=settings.keep_last)

    def epochs(self) -> Iterator[int]:
        """Train, yielding the number of each epoch done, until no member may improve."""
        step = 0
        patience = self.settings.patience or self.settings.max_epochs
        for epoch in range(1, self.settings.max_epochs + 1):
            rule = partial(trust, fence=fence_at(epoch, self.settings.max_epochs))
            normals, anomalies = zip(*(b.epoch() for b in self.batches), strict=True)
            for sample in Sample.of_each_step(normals, anomalies, self.device):
                self._step(sample, step, rule)
                step += 1
            self.best.see(epoch, self._judge().cpu(), self.density)
            yield epoch
            self.best.runs &= epoch - self.best.epoch < patience
            if not self.best.runs.any():
                return

    def _step(self, sample: Sample, step: int, rule: LikelihoodWeight) -> None:
        noise = stacked_noise(self.noise, sample)
        log_p = self._log_p(sample, step % self.density.n_passes, noise)
        normal, anomaly = sample.split(log_p)
        trusted = self._likelihood_weight(rule, sample, normal)
        value = objective(normal, anomaly, *sample.weights, self.lam, trusted)
        # Members share no parameter, so one backward pass serves them all, and one that turns
        # to NaN is alone with it.
        (-value.sum()).backward()
        self.optimizer.step()

    def _likelihood_weight(
        self, rule: LikelihoodWeight, sample: Sample, normal: Float[Tensor, "m n"]
    ) -> Float[Tensor, "m n"]:
        """Weigh the normals of a sample in the likelihood, by a rule where some are doubtful."""
        weight, _ = sample.weights
        if self.doubtful is None:
            return weight
        return rule(normal, weight, self.doubtful[sample.index[:, : sample.n_normals]])

    def _log_p(
        self, sample: Sample, index: int, noise: Float[Tensor, "m r z"] | None
    ) -> Float[Tensor, "m r"]:
        """Return log p of each member's rows in one pass.

        Cells without a value take their substitutes from the normals of the sample itself.
        """
        n = sample.n_normals
        rows = self.rows.take(sample.index)._replace(noise=noise).by_column
        terms = self.density.terms(rows, index)
        if self.is_complete:  # the common case, and faster
            return terms.value.sum(-1) + terms.rest
        counted = rows.has_value & (sample.weight.unsqueeze(-1) > 0)
        return row_log_p(terms, rows, substitutes_from(terms.first(n), counted[:, :n]))

    @torch.no_grad()
    def _judge(self) -> Float[Tensor, " m"]:
        passes = enumerate(self.validation_noise)
        log_p = torch.stack([self._log_p(self.validation, i, noise) for i, noise in passes], -1)
        normal, anomaly = self.validation.split(mean_over_passes(log_p))
        return criterion(
            normal,
            anomaly,
            *self.validation.weights,
            name=self.settings.criterion,
            likelihood_weight=self._likelihood_weight(trim, self.validation, normal),
        )

    def trained(self) -> list[Trained]:
        """Unstack the members at their best epochs."""
        return [self.best.member(i, member) for i, member in enumerate(self.members)]


@final
class _Best:
    """What was best of each of m members so far: parameters, criterion and epoch, and its curve.

    Of those that run no longer nothing is seen.
    """

    def __init__(self, density: Density, n_members: int, *, keep_last: bool) -> None:
        self.keep_last = keep_last
        self.runs = torch.ones(n_members, dtype=torch.bool)
        self.parameters = {n: p.detach().clone() for n, p in density.named_parameters()}
        self.value = torch.full((n_members,), -torch.inf)
        self.epoch = torch.zeros(n_members, dtype=torch.int64)
        self.curves: list[list[float]] = [[] for _ in range(n_members)]

    def see(self, epoch: int, value: Float[Tensor, " m"], density: Density) -> None:
        """Keep the members that are better than ever, or the last; one ends where it is NaN."""
        for i in self.runs.nonzero().ravel().tolist():
            self.curves[i].append(float(value[i]))
        self.runs &= value.isfinite()
        which = self.runs if self.keep_last else self.runs & (value > self.value)
        self.value[which], self.epoch[which] = value[which], epoch
        which = which.nonzero().ravel()
        for name, p in density.named_parameters():
            self.parameters[name][which] = p.detach()[which]

    def member(self, place: int, member: Member) -> Trained:
        """Return the member in this place."""
        parameters = {name: p[place].clone() for name, p in self.parameters.items()}
        return Trained(member, parameters, int(self.epoch[place]), tuple(self.curves[place]))


def _initial(density: Density, members: Sequence[Member], device: torch.device) -> Parameters:
    """Stack the members' initial parameters; drawn on the CPU, so that devices agree."""
    density.cpu()
    states = []
    for member in members:
        density.reset(torch.Generator().manual_seed(member.seed))
        states.append({name: p.detach().clone() for name, p in density.named_parameters()})
    density.to(device)
    return {
        name: torch.stack([state[name] for state in states]).to(device).requires_grad_()
        for name in states[0]
    }


def _drawn(members: Sequence[Member], device: torch.device) -> Parameters:
    """Stack what is random in the members' structures; nothing where the template's serves all."""
    each = [member.drawn for member in members if member.drawn is not None]
    names = each[0] if each else {}
    return {name: torch.stack([one[name] for one in each]).to(device) for name in names}


def validation_normals(member: Member) -> Ints:
    """Draw the normals that judge a member: all of them, or as many as are worth the time."""
    rows = np.random.default_rng(member.seed).permutation(member.rows.validation_normals)
    return rows[:MAX_VALIDATION_NORMALS]
