"""A page about scored rows: facts of a table -> figures -> one HTML file.

Read in this order: sketches, facts, figures, thresholds, page.
"""

from fewlier.report.facts import Facts, gather
from fewlier.report.page import render, write_report

__all__ = ["Facts", "gather", "render", "write_report"]
