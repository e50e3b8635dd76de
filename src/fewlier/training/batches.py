"""Which rows each member sees in a step: row numbers of a stack of members, padded to one shape."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from torch import Tensor

from fewlier.table.arrays import Ints


@final
@dataclass(frozen=True)
class Sample:
    """Rows of each of m members: normals first, then anomalies, padded with rows of weight 0."""

    index: Int[Tensor, "m r"]
    weight: Float[Tensor, "m r"]
    n_normals: int

    @classmethod
    def of(cls, normals: Sequence[Ints], anomalies: Sequence[Ints]) -> "Sample":
        """Pad the members' row numbers to a common width."""
        (normal_index, normal_weight), (index, weight) = _pad(normals), _pad(anomalies)
        return cls(
            torch.from_numpy(np.concatenate([normal_index, index], axis=1)),
            torch.from_numpy(np.concatenate([normal_weight, weight], axis=1)),
            normal_index.shape[1],
        )

    @classmethod
    def of_each_step(
        cls, normals: Sequence[Ints], anomalies: Sequence[Ints], device: torch.device
    ) -> Iterator["Sample"]:
        """Yield the samples of an epoch, of normals with a leading axis of steps, on a device."""
        whole = cls.of([steps[0] for steps in normals], anomalies).to(device)
        index = whole.index.repeat(len(normals[0]), 1, 1)
        for member, steps in enumerate(normals):
            index[:, member, : steps.shape[1]] = torch.from_numpy(steps).to(device)
        for step in index:
            yield cls(step, whole.weight, whole.n_normals)

    def to(self, device: torch.device) -> "Sample":
        """Return the sample on a device."""
        return Sample(self.index.to(device), self.weight.to(device), self.n_normals)

    def split(self, x: Float[Tensor, "m r"]) -> tuple[Float[Tensor, "m n"], Float[Tensor, "m a"]]:
        """Split what is known about each row into normals and anomalies."""
        return x[:, : self.n_normals], x[:, self.n_normals :]

    @property
    def weights(self) -> tuple[Float[Tensor, "m n"], Float[Tensor, "m a"]]:
        """Weights of the normals and of the anomalies."""
        return self.split(self.weight)


@final
class Batches:
    """One member's batches: slices of its shuffled normals, with all of its anomalies.

    An epoch of a large table takes the next rows of the last shuffle, as long as there are enough;
    the remainder is left to the next shuffle. Where there are more anomalies than a batch holds,
    each epoch draws some of them.
    """

    def __init__(
        self, normals: Ints, anomalies: Ints, size: int, seed: int, max_steps: int = 100
    ) -> None:
        self.normals, self.anomalies = normals, anomalies
        self.size, self.max_steps = size, max_steps
        self._left = normals[:0]
        # Streams of their own: which normals a step takes does not depend on the anomalies.
        self.normal_rng, self.anomaly_rng = np.random.default_rng(seed).spawn(2)

    def epoch(self) -> tuple[Ints, Ints]:
        """Return the normals of s steps, shape (s, n), and the anomalies of all of them."""
        steps = n_steps(len(self.normals), self.size, self.max_steps)
        width = min(self.size, len(self.normals))
        if len(self._left) < steps * width:
            self._left = self.normal_rng.permutation(self.normals)
        normals, self._left = np.split(self._left, [steps * width])
        anomalies = self.anomaly_rng.permutation(self.anomalies)[: self.size]
        return normals.reshape(steps, width), anomalies


@final
class Noise:
    """One member's standard normals: `width` fresh ones for every row of a step.

    Drawn on the CPU, so that devices agree, and for the member's own rows, so that it does not
    matter how a stack pads them.
    """

    def __init__(self, width: int, seed: int) -> None:
        self.width = width
        # The third and fourth streams of the seed; `Batches` takes the first two.
        self.streams = np.random.default_rng(seed).spawn(4)[2:]

    def draw(self, n_normals: int, n_anomalies: int) -> list[npt.NDArray[np.float32]]:
        """Draw for the normals and for the anomalies of a step, shape (n, width) each."""
        return [
            stream.standard_normal((n, self.width), dtype=np.float32)
            for stream, n in zip(self.streams, (n_normals, n_anomalies), strict=True)
        ]


def stacked_noise(members: Sequence[Noise], sample: Sample) -> Float[Tensor, "m r z"] | None:
    """Draw for the rows of a sample; rows that pad it get zeros. None where no noise is asked for.

    The result is on the device of the sample.
    """
    if not members[0].width:
        return None
    noise = torch.zeros(*sample.weight.shape, members[0].width)
    counts = [weight.sum(-1).int().tolist() for weight in sample.weights]
    for i, (member, n_normals, n_anomalies) in enumerate(zip(members, *counts, strict=True)):
        normal, anomaly = map(torch.from_numpy, member.draw(n_normals, n_anomalies))
        noise[i, :n_normals] = normal
        noise[i, sample.n_normals : sample.n_normals + n_anomalies] = anomaly
    return noise.to(sample.weight.device)


def n_steps(n_normals: int, batch_size: int, max_steps: int) -> int:
    """Return the steps of one epoch."""
    return min(max(n_normals // batch_size, 1), max_steps)


def _pad(lists: Sequence[Ints]) -> tuple[Ints, npt.NDArray[np.float32]]:
    """Return rows and weights of one width; in every step, where `pad_sequence` takes 4x longer."""
    width = max(len(rows) for rows in lists)
    index = np.zeros((len(lists), width), dtype=np.int64)
    weight = np.zeros((len(lists), width), dtype=np.float32)
    for i, rows in enumerate(lists):
        index[i, : len(rows)], weight[i, : len(rows)] = rows, 1
    return index, weight
