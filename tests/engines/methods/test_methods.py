"""What fewlier is compared with, and what only runs where its packages are installed."""

import csv

import numpy as np
import pytest
from peer_checks import (
    check_that_anomalies_score_high_and_again_the_same,
    check_that_it_uses_labels_if_it_says_so,
)

from fewlier_bench.cli.studies import run_study
from fewlier_bench.methods import deep_peers
from fewlier_bench.methods.askers import ASKERS
from fewlier_bench.methods.peers import PEERS

PACKAGED = [peer.name for peer in PEERS.values() if peer.module]
each_peer = pytest.mark.parametrize("name", PACKAGED)
pytestmark = pytest.mark.filterwarnings("default")  # of the methods' own packages


@each_peer
def test_its_package_is_installed_and_known_by_the_name_that_rows_record(name):
    assert PEERS[name].is_installed
    assert PEERS[name].packages


@each_peer
def test_anomalies_score_high_and_again_the_same(name):
    check_that_anomalies_score_high_and_again_the_same(name)


@each_peer
def test_a_method_uses_labels_if_it_says_so(name):
    check_that_it_uses_labels_if_it_says_so(name)


@pytest.mark.parametrize("name", [p.name for p in PEERS.values() if p.module == "deepod"])
def test_networks_are_checked_to_learn_from_labels(name):
    np_state = np.random.get_state()[1].copy()  # noqa: NPY002
    right, shuffled = deep_peers.learning_aucs(name)
    assert right > 0.9
    assert right - shuffled > 0.2
    np.testing.assert_array_equal(np.random.get_state()[1], np_state)  # noqa: NPY002


@pytest.mark.parametrize("name", ASKERS)
def test_it_asks_about_other_rows_each_time_and_finds_what_is_far_out(name):
    rng = np.random.default_rng(0)
    y = (np.arange(300) < 15).astype(np.int8)
    X = rng.normal(size=(300, 3)) + 6 * y[:, None] * rng.choice([-1, 1], (300, 3))
    asked = ASKERS[name](X, y, 20, 0)
    assert len(set(asked.rows)) == len(asked.rows) == 20
    assert y[asked.rows].sum() >= 10  # by chance it would be one
    assert asked.seconds > 0


def test_shap_is_measured_on_the_rows_that_fewlier_explains(tmp_path):
    rng = np.random.default_rng(0)
    y = (np.arange(200) < 20).astype(np.int8)
    np.savez(tmp_path / "table.npz", X=rng.normal(size=(200, 3)) + 3 * y[:, None], y=y)
    out = tmp_path / "reasons.csv"
    words = ["run", "--data", str(tmp_path), "--out", str(out), "--shap", "4"]
    run_study("planted-reasons", words)
    lines = list(csv.DictReader(out.read_text("utf-8").splitlines()))
    far = {line["method"]: line for line in lines if line["kind"] == "far"}
    assert far["kernel SHAP of isolation forest"]["n_rows"] == "4"
    assert int(far["fewlier"]["n_rows"]) > 4
    assert all(float(line["top1"]) > 0.5 for line in far.values())
