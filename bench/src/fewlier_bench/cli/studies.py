"""The commands of studies: each reads its own options, and its help is the study's docstring."""

from collections.abc import Sequence
from importlib import import_module

import typer

STUDIES = {
    "speed": "Time fits, scoring and starting, against a plain PyTorch loop and other methods.",
    "serve": "Put load on a service, one row and 1,000 rows at a time.",
    "onnx": "Compare exported graphs in onnxruntime with the library on a folder of tables.",
    "large-files": "Measure the memory and speed of scoring as a file grows.",
    "label-page": "Time the labelling page in a browser, from a key to the next row.",
    "scale": "Fit by streams, compare sizes of their sample, and score on engines.",
    "dev-tables": "Compare densities, selections and numbers of labels on a folder of tables.",
    "prior": "Train the network that has seen other tables, and measure weights.",
    "parts": "Leave each part of the score out, and see what that costs.",
    "unlabelled-pools": "Hide anomalies among unlabelled rows, and compare ways to treat them.",
    "label-rounds": "Label the oddest rows round by round, and compare update with a new fit.",
    "discovery": "Ask about rows one at a time, and count the anomalies found, beside others.",
    "planted-reasons": "Tamper with a column, and count how often it is among the reasons.",
    "expected-ranges": "Count how many values of fresh normal rows lie in what was expected.",
    "odd-cells": "Replace a cell by an impossible, a far or a missing one, and count what it does.",
    "certainty": "Simulate whether p-values and false-discovery rates keep their promise.",
    "promises": "Replay contamination, validation intervals and costs on a folder of tables.",
}


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for name, sentence in STUDIES.items():
        app.command(
            name,
            help=sentence,
            rich_help_panel="Studies",
            add_help_option=False,
            context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
        )(run)


def run(context: typer.Context) -> None:
    """Hand the words of the command line to the study."""
    run_study(str(context.info_name), context.args)


def run_study(name: str, words: Sequence[str]) -> None:
    """Do what these words ask of a study."""
    module = import_module(f"fewlier_bench.studies.{name.replace('-', '_')}")
    module.STUDY.main(name, module.__doc__, words)
