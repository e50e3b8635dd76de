"""Train the network that has seen other tables, and measure weights on tables that it has not.

    fewlier-bench prior train --tables tables.npz --out DIR --minutes 9 --data dev dev2
    fewlier-bench prior weigh DIR/weights.safetensors --data dev dev2 --out rows.csv

`train` goes on from the weights in DIR if there are any, writes a line a minute, and adds the run
to DIR/record.json. TABLES holds X0, y0, X1, y1 … and names; y is 1 for an anomaly. Each folder of
data holds `.npz` files with X and y, about which questions are asked: with no labels, with six, and
with six of one cluster of anomalies about the others.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from fewlier_bench.studies.grid import append, make_parser

_FIELDS = ["weights", "table", "situation", "seed", "auc", "ap"]


def train(arguments: argparse.Namespace) -> None:
    """Train for some minutes."""
    import torch

    from fewlier_bench.prior.tables import Tables
    from fewlier_bench.prior.train import Settings
    from fewlier_bench.prior.train import train as run
    from fewlier_bench.prior.weigh import SITUATIONS, read_questions

    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for every size
    tables = Tables(arguments.tables, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    questions = read_questions(arguments.data, SITUATIONS, [0])
    settings = Settings(**{f.name: getattr(arguments, f.name) for f in fields(Settings)})
    run(tables, arguments.out, arguments.minutes, questions, settings, _say)


def weigh(arguments: argparse.Namespace) -> None:
    """Measure weights on folders of tables, and print the means."""
    from safetensors.torch import load_file

    from fewlier_bench.prior.network import Network
    from fewlier_bench.prior.weigh import SITUATIONS, means, read_questions
    from fewlier_bench.prior.weigh import weigh as measure

    network = Network.of(load_file(arguments.weights))
    rows = measure(network, read_questions(arguments.data, SITUATIONS, arguments.seeds))
    if arguments.out:
        append(arguments.out, _FIELDS, [{"weights": arguments.weights.name, **r} for r in rows])
    _say(json.dumps({name: round(value, 4) for name, value in means(rows).items()}))


def _say(line: str) -> None:
    print(line, flush=True)


def main(words: Sequence[str]) -> None:
    """Run the command."""
    parser = make_parser(__name__, __doc__)
    commands = parser.add_subparsers(required=True)
    trainer = commands.add_parser("train", help="train for some minutes")
    trainer.set_defaults(command=train)
    trainer.add_argument("--tables", type=Path, required=True)
    trainer.add_argument("--out", type=Path, required=True)
    trainer.add_argument("--minutes", type=float, required=True)
    trainer.add_argument("--data", type=Path, nargs="*", default=[], metavar="DIR")
    _add_settings(trainer)
    weigher = commands.add_parser("weigh", help="measure weights on folders of tables")
    weigher.set_defaults(command=weigh)
    weigher.add_argument("weights", type=Path)
    weigher.add_argument("--data", type=Path, nargs="+", required=True, metavar="DIR")
    weigher.add_argument("--out", type=Path)
    weigher.add_argument("--seeds", type=int, nargs="+", default=[0])
    arguments = parser.parse_args(words)
    arguments.command(arguments)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    from fewlier_bench.prior.train import Settings

    for field in fields(Settings):
        name, kind = "--" + field.name.replace("_", "-"), type(field.default)
        parser.add_argument(name, type=kind, default=field.default)
