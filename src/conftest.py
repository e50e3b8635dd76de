"""The examples in docstrings, as tests of this environment."""

import os

# Their examples need packages that only the environments of tests/engines have, and run there.
collect_ignore = [
    f"fewlier/{name}" for name in ("engines/ray.py", "engines/spark.py", "mlflow.py", "notebook.py")
]
os.environ.setdefault("MPLBACKEND", "agg")  # no example opens a window
