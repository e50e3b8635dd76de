"""Train the network on tasks for some minutes, from the last weights if there are any."""

import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, final

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn.functional import softplus
from torch.nn.utils import clip_grad_norm_

from fewlier_bench.prior.made_up import make_up
from fewlier_bench.prior.network import Network
from fewlier_bench.prior.tables import Tables
from fewlier_bench.prior.tasks import Size, Tasks, make_tasks
from fewlier_bench.prior.weigh import Question, means, weigh

WEIGHTS: Final = "weights.safetensors"
RECORD: Final = "record.json"

_N_LABELS: Final = (0, 0, 0, 0, 1, 2, 3, 4, 6, 6, 8, 10, 16, 25, 40)
_N_NORMALS: Final = (50, 70, 100, 140, 200, 256, 330, 400, 400, 700, 1000)
_N_COLUMNS: Final = (3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 30, 38, 48)
_HELD_OUT_SIZES: Final = ((100, 0, 5), (256, 0, 10), (256, 6, 8), (330, 10, 16), (400, 2, 30))
_N_HELD_OUT: Final = 40  # tasks of each size
_MAX_REAL_ROWS: Final = 700  # real tables have no more normal rows
_MAX_ROWS: Final = 65_000  # of a step: attention takes no more sequences at once
_WARM_UP: Final = 200
_CALIBRATED: Final = 0.15
_SECONDS_PER_LINE: Final = 60.0


@final
@dataclass(frozen=True)
class Settings:
    """How the network is made and trained.

    Parameters
    ----------
    width, depth, heads : int
        Size of the network.
    learning_rate : float
        Of Muon for the matrices of the blocks, and of Adam for the rest.
    cool : float
        Share of the time, at its end, in which the learning rate falls to nothing.
    loss : str
        What a pair of a normal row and an anomaly costs: `log`, log(1 + exp(−difference)), or
        `auc`, σ(−difference), the paper's.
    real : float
        Share of the tasks that are made of real tables.
    cells : int
        Most cells in a step.
    asked : int
        Normal rows that a task asks about, and as many anomalies.
    decay : float
        The weights that are kept are a mean over steps, each worth so much of the next.
    """

    width: int = 128
    depth: int = 6
    heads: int = 4
    learning_rate: float = 4e-3
    cool: float = 0.0
    loss: Literal["log", "auc"] = "log"
    real: float = 0.5
    cells: int = 500_000
    asked: int = 48
    decay: float = 0.999
    seed: int = 0


def train(
    tables: Tables,
    out: Path,
    minutes: float,
    questions: Sequence[Question],
    settings: Settings,
    say: Callable[[str], None],
) -> None:
    """Train, write a line a minute, and leave weights and a record of the run in `out`."""
    run = _Run(tables, settings, out / WEIGHTS if (out / WEIGHTS).exists() else None)
    lines: list[dict[str, float]] = []
    sizes, started = _sizes(settings), time.monotonic()
    while (share := (time.monotonic() - started) / (60 * minutes)) < 1:
        run.step(*next(sizes), share)
        if time.monotonic() - started > _SECONDS_PER_LINE * (len(lines) + 1):
            lines.append(run.line(time.monotonic() - started, questions))
            say(json.dumps(lines[-1]))
    lines.append(run.line(time.monotonic() - started, questions))
    say(json.dumps(lines[-1]))
    out.mkdir(parents=True, exist_ok=True)
    save_file({name: value.cpu() for name, value in run.average.items()}, out / WEIGHTS)
    _record(out / RECORD, tables, minutes, settings, lines)


@final
class _Run:
    """A network with what trains it."""

    def __init__(self, tables: Tables, settings: Settings, weights: Path | None) -> None:
        device = tables.n_columns.device
        torch.manual_seed(settings.seed)  # noqa: TID251 - this process does nothing else
        self._tables, self._settings = tables, settings
        self._network = Network(settings.width, settings.depth, settings.heads).to(device)
        if weights is not None:
            self._network.load_state_dict(load_file(weights))
        # Another network computes in less precision; its gradients move the weights of the first.
        precision = torch.bfloat16 if device.type == "cuda" else torch.float32
        self._working = self._like(precision)
        self._optimizers = _optimizers(self._network, settings.learning_rate)
        self.average = {k: v.detach().clone() for k, v in self._network.state_dict().items()}
        self._n_steps = self._n_tasks = 0
        self._loss: list[Tensor] = []
        self._ranked: dict[str, list[Tensor]] = {"real": [], "made up": []}

    def step(self, size: Size, n_columns: int, share: float) -> None:
        """Take a step on new tasks, when a share of the time has passed."""
        tasks, n_real = _draw(self._tables, size, n_columns, self._settings)
        masters: list[Tensor] = list(self._network.parameters())
        copies: list[Tensor] = list(self._working.parameters())
        with torch.no_grad():
            torch._foreach_copy_(copies, masters)
        loss, ranked = _loss(self._working, tasks, self._settings)
        self._working.zero_grad(set_to_none=True)
        loss.backward()
        for master, copy in zip(masters, copies, strict=True):
            if copy.grad is not None:  # a loss that is not finite moves nothing
                master.grad = copy.grad.to(master.dtype).nan_to_num_(0.0, 0.0, 0.0)
        clip_grad_norm_(masters, 1.0)
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self._settings.learning_rate * self._rate(share)
            optimizer.step()
        self._n_steps += 1
        self._n_tasks += len(tasks.values)
        self._loss.append(loss.detach())
        self._ranked["real"] += [ranked[:n_real].mean()] if n_real else []
        self._ranked["made up"] += [ranked[n_real:].mean()] if n_real < len(ranked) else []
        rate = min(self._settings.decay, self._n_steps / (10 + self._n_steps))
        weights = list(self._network.state_dict().values())
        torch._foreach_lerp_(list(self.average.values()), weights, 1 - rate)

    def line(self, seconds: float, questions: Sequence[Question]) -> dict[str, float]:
        """Return what there is to say of the steps since the last line."""
        network = self._like(torch.float32)
        network.load_state_dict(self.average)
        found = {
            "minutes": seconds / 60,
            "steps": self._n_steps,
            "tasks": self._n_tasks,
            "loss": _mean(self._loss),
            **{f"ranked, {sort}": _mean(found) for sort, found in self._ranked.items()},
            "ranked, held out": self._held_out(network),
            **means(weigh(network, questions)),
        }
        self._loss, self._ranked = [], {"real": [], "made up": []}
        return {name: round(value, 4) for name, value in found.items()}

    @torch.no_grad()
    def _held_out(self, network: Network) -> float:
        """Return the share of pairs in order in tasks of tables that are held out."""
        device, found = self._tables.n_columns.device, []
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(0)  # noqa: TID251 - the same tasks each time
            for n_normals, n_labels, n_columns in _HELD_OUT_SIZES:
                size = Size(n_normals, n_labels, self._settings.asked)
                rows, other = (
                    self._tables.draw(_N_HELD_OUT, n_columns, n, held_out=True)
                    for n in (n_labels + 10, 0)
                )
                _, ranked = _loss(network, make_tasks(rows, other, size), self._settings)
                found.append(ranked.mean())
        return _mean(found)

    def _rate(self, share: float) -> float:
        """Return the share of the learning rate: it rises, stays, and falls at the end."""
        cool = self._settings.cool
        fall = min(1.0, (1 - share) / cool) if cool else 1.0
        return min(1.0, (self._n_steps + 1) / _WARM_UP) * fall

    def _like(self, precision: torch.dtype) -> Network:
        size = self._settings.width, self._settings.depth, self._settings.heads
        return Network(*size).to(self._tables.n_columns.device, precision)


def _mean(values: Sequence[Tensor]) -> float:
    return float(torch.stack([v.float() for v in values]).mean()) if values else float("nan")


def _loss(network: Network, tasks: Tasks, settings: Settings) -> tuple[Tensor, Tensor]:
    """Return the loss, and for each task the share of pairs of rows that are in order."""
    size = tasks.size
    known = size.n_normals, size.n_labels
    scores = network(tasks.values, tasks.is_category, tasks.labels, *known)
    normal, odd = scores[:, : size.n_asked], scores[:, size.n_asked :]
    apart = odd[:, :, None] - normal[:, None]
    pairs = softplus(-apart) if settings.loss == "log" else torch.sigmoid(-apart)
    loss = pairs.mean() + _CALIBRATED * (softplus(-odd).mean() + softplus(normal).mean())
    return loss, (apart > 0).float().mean((1, 2))


def _draw(tables: Tables, size: Size, n_columns: int, settings: Settings) -> tuple[Tasks, int]:
    """Make the tasks of a step, and say how many of them, the first, are of real tables."""
    n_rows = size.n_normals + size.n_labels + 2 * size.n_asked
    n_tasks = min(settings.cells // (n_columns + 1), _MAX_ROWS) // n_rows
    n_tasks = max(8, n_tasks - n_tasks % 8)
    n_real = round(n_tasks * settings.real) if size.n_rows <= _MAX_REAL_ROWS else 0
    parts = []
    if n_real:
        rows = tables.draw(n_real, n_columns, size.n_labels + 10)
        parts.append(make_tasks(rows, tables.draw(n_real, n_columns, 0), size))
    if n_tasks > n_real:
        rows, other = (
            make_up(n_tasks - n_real, size.n_rows, n_columns, tables.n_columns.device)
            for _ in range(2)
        )
        parts.append(make_tasks(rows, other, size))
    tasks = Tasks(
        torch.cat([part.values for part in parts]),
        torch.cat([part.is_category for part in parts]),
        torch.cat([part.labels for part in parts]),
        size,
    )
    return tasks, n_real


def _sizes(settings: Settings) -> Iterator[tuple[Size, int]]:
    """Yield sizes of steps and numbers of columns, without end."""
    generator = torch.Generator().manual_seed(settings.seed)

    def pick(values: Sequence[int]) -> int:
        return values[int(torch.randint(len(values), (), generator=generator))]

    while True:
        yield Size(pick(_N_NORMALS), pick(_N_LABELS), settings.asked), pick(_N_COLUMNS)


def _optimizers(network: Network, learning_rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the blocks, Adam for all else."""
    matrices = {id(p): p for p in network.blocks.parameters() if p.ndim == 2}
    others = [p for p in network.parameters() if id(p) not in matrices]
    return [
        torch.optim.AdamW(others, learning_rate, betas=(0.9, 0.98), weight_decay=0.01),
        torch.optim.Muon(
            list(matrices.values()),
            learning_rate,
            weight_decay=0.01,
            adjust_lr_fn="match_rms_adamw",
        ),
    ]


def _record(
    path: Path,
    tables: Tables,
    minutes: float,
    settings: Settings,
    lines: Sequence[Mapping[str, float]],
) -> None:
    """Add a run to the record of all runs that made the weights."""
    record: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else []
    device = tables.n_columns.device
    record.append(
        {
            "minutes": minutes,
            "settings": asdict(settings),
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
            "versions": {"python": platform.python_version(), "torch": torch.__version__},
            "tables": {"sha256": tables.sha256, "names": tables.names},
            "lines": list(lines),
        }
    )
    path.write_text(json.dumps(record, indent=1), "utf-8")
