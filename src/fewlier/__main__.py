"""`python -m fewlier` is `fewlier`."""

from fewlier.cli import run

if __name__ == "__main__":  # and not in a worker, which imports this module again
    run()
