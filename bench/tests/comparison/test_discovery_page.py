"""What is made of the rows of the study `discovery`."""

import json

from fewlier_bench.comparison.discovery_page import FIELDS, discovery_blocks
from fewlier_bench.pages.blocks import EMPTY


def line(table, seed, found, **more):
    counts = {f"found_{n}": str(found) for n in (20, 40, 60)}
    kinds = {f"kinds_{n}": "2" for n in (20, 40, 60)}
    own = {"table": table, "method": "fewlier", "seed": seed, "rows": "100", "anomalies": "9"}
    return dict.fromkeys(FIELDS, "") | own | counts | kinds | {"seconds": "0.5"} | more


def test_finds_are_means_over_seeds_and_sums_over_tables():
    blocks = discovery_blocks([line("a", "1", 4), line("a", "2", 7), line("b", "1", 10)])
    assert "| fewlier | 15.5 | 15.5 | 15.5 | 4.0 | 4.0 | 0.500 |" in blocks["found"]
    assert "Sums over 2 tables of the mean over seeds 1, 2" in blocks["found"]
    assert "| a (100, 9) | 5.5 |" in blocks["tables"]
    assert blocks["answers"] == EMPTY


def test_intervals_are_counted_that_hold_the_truth():
    told = [{"20": [5, 2, 9, truth]} for truth in (1, 2, 9, 10)]
    lines = [line("a", str(i), 1, remaining=json.dumps(t)) for i, t in enumerate(told)]
    assert "| 20 | 50% | 25% | 25% |" in discovery_blocks(lines)["remaining"]


def test_answers_are_compared_with_random_labels():
    auc = {"auc_random": "0.8", "auc_20": "0.7", "auc_60": "0.9"}
    blocks = discovery_blocks([line("a", "1", 1, **auc, method="answers")])
    assert "| *mean* | 0.800 | 0.700 | 0.900 |" in blocks["answers"]
