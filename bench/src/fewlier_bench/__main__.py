"""`python -m fewlier_bench` is `fewlier-bench`."""

from fewlier_bench.cli import run

if __name__ == "__main__":  # and not in a worker, which imports this module again
    run()
