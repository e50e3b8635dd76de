"""Train the network that has seen other tables, and measure weights on tables that it has not.

    fewlier-bench prior train --tables tables.npz --out DIR --minutes 9 --data dev dev2
    fewlier-bench prior weigh DIR/weights.safetensors --data dev dev2 --out rows.csv

`train` goes on from the weights in DIR if there are any, writes a line a minute, and adds the run
to DIR/record.json. TABLES holds X0, y0, X1, y1 … and names; y is 1 for an anomaly. Each folder of
data holds `.npz` files with X and y, about which questions are asked: with no labels, with six, and
with six of one cluster of anomalies about the others.
"""

import json
from argparse import Namespace
from dataclasses import fields
from pathlib import Path

import torch
from safetensors.torch import load_file

from fewlier_bench.prior.network import Network
from fewlier_bench.prior.tables import Tables
from fewlier_bench.prior.train import Settings
from fewlier_bench.prior.train import train as train_network
from fewlier_bench.prior.weigh import SITUATIONS, means, read_questions
from fewlier_bench.prior.weigh import weigh as weigh_network
from fewlier_bench.studies.grid import append
from fewlier_bench.studies.study import OUT, Study, option

_FIELDS = ["weights", "table", "situation", "seed", "auc", "ap"]


def train(arguments: Namespace) -> None:
    """Train for some minutes."""
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for every size
    tables = Tables(arguments.tables, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    questions = read_questions(arguments.data, SITUATIONS, [0])
    settings = Settings(**{f.name: getattr(arguments, f.name) for f in fields(Settings)})
    train_network(tables, arguments.out, arguments.minutes, questions, settings, _say)


def weigh(arguments: Namespace) -> None:
    """Measure weights on folders of tables, and print the means."""
    network = Network.of(load_file(arguments.weights))
    rows = weigh_network(network, read_questions(arguments.data, SITUATIONS, arguments.seeds))
    if arguments.out:
        append(arguments.out, _FIELDS, [{"weights": arguments.weights.name, **r} for r in rows])
    _say(json.dumps({name: round(value, 4) for name, value in means(rows).items()}))


def _say(line: str) -> None:
    print(line, flush=True)


STUDY = Study.of(
    train,
    option("--tables", type=Path, required=True),
    OUT,
    option("--minutes", type=float, required=True),
    option("--data", type=Path, nargs="*", default=[], metavar="DIR"),
    *(
        option(f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default)
        for field in fields(Settings)
    ),
) | Study.of(
    weigh,
    option("weights", type=Path),
    option("--data", type=Path, nargs="+", required=True, metavar="DIR"),
    option("--out", type=Path),
    option("--seeds", type=int, nargs="+", default=[0]),
)
