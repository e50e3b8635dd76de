"""Runs the contract tests for what a test adds to a registry."""

import importlib.util
import itertools
from pathlib import Path

FOLDER = Path(__file__).parent / "contract"


def load_contract(file):
    """Import a file of contract tests as it is after something was registered."""
    spec = importlib.util.spec_from_file_location(f"contract_{file[:-3]}", FOLDER / file)
    contract = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(contract)
    return contract


def run_contract(contract, name):
    """Run each test that is parametrised by names of a registry for one name; return how many."""
    n_run = 0
    for title, test in vars(contract).items():
        marks = [m for m in getattr(test, "pytestmark", ()) if m.name == "parametrize"]
        if title.startswith("test_") and any(name in mark.args[1] for mark in marks):
            values = [[name] if mark.args[0] == "name" else mark.args[1] for mark in marks]
            for choice in itertools.product(*values):
                test(**dict(zip((mark.args[0] for mark in marks), choice, strict=True)))
            n_run += 1
    return n_run
