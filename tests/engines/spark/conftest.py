"""One session of Spark on this machine, and a model to score with."""

import os
import sys
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["PYSPARK_PYTHON"] = sys.executable
sys.path.append(str(Path(__file__).parents[2]))  # for tests/factories.py


def pytest_configure(config):
    """Let warnings of others pass: they are not about fewlier."""
    config.addinivalue_line("filterwarnings", "default")


@pytest.fixture(scope="session")
def spark():
    """Return a session with two workers."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """Return the path of a model for `factories.payments`."""
    from factories import save_model

    return save_model(tmp_path_factory.mktemp("model") / "fraud.fewlier")
