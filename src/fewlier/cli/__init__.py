"""The command line: parse, one call, print."""

from fewlier.cli.app import app, main, run

__all__ = ["app", "main", "run"]
