"""The command line as a process: it runs without being installed, if Python finds the package."""

import sys

BENCH = (sys.executable, "-m", "fewlier_bench")
