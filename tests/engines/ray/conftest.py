"""A cluster of two nodes on this machine, and a model to score with."""

import os
import sys
from pathlib import Path

import pytest

# Before torch and Ray are imported.
os.environ["OMP_NUM_THREADS"] = "2"  # of which a worker must not make use
os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
# For factories.py, slowness.py and computing.py, here and in the workers.
HERE = Path(__file__).parent
BENCH = HERE.parents[2] / "bench"
FOLDERS = [HERE, HERE.parents[1], BENCH / "tests", BENCH / "src"]  # the last, because it changes
sys.path[:0] = map(str, FOLDERS)
os.environ["PYTHONPATH"] = os.pathsep.join(map(str, FOLDERS))


def pytest_configure(config):
    """Let warnings of others pass: they are not about fewlier."""
    config.addinivalue_line("filterwarnings", "default")


@pytest.fixture(scope="session")
def cluster():
    """Return a cluster of two nodes of two cores each, which this process has joined."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False}
    )
    cluster.add_node(num_cpus=2)
    ray.init(address=cluster.address, log_to_driver=False)
    cluster.wait_for_nodes()
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """Return the path of a model for `factories.payments`."""
    from factories import save_model

    return save_model(tmp_path_factory.mktemp("model") / "fraud.fewlier")
