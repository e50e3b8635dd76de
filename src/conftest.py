"""The examples in docstrings, as tests of this environment."""

import os

# Their examples need packages that only the environments of tests/engines have, and run there.
collect_ignore = [
    f"fewlier/{name}.py"
    for name in ("engines/ray", "engines/spark", "export/mlflow", "labelling/widget")
]
os.environ.setdefault("MPLBACKEND", "agg")  # no example opens a window
