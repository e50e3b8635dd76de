import pytest

from fewlier_bench.data import list_datasets
from fewlier_bench.reproduction.experiments import KS, METHODS, SUPERVISED, UNSUPERVISED
from fewlier_bench.reproduction.published import (
    published_auc,
    published_average,
    published_datasets,
    setting_datasets,
)


def test_the_catalogue_asks_for_the_counts_that_the_paper_prints():
    printed = {
        name: (table.n_rows, table.n_columns, table.n_anomalies)
        for name, table in published_datasets().items()
    }
    asked = {
        entry.name: (entry.paper.n_rows, entry.paper.n_columns, entry.paper.n_anomalies)
        for entry in list_datasets()
    }
    assert printed == asked
    for table in published_datasets().values():
        assert table.anomaly_rate == pytest.approx(table.n_anomalies / table.n_rows, abs=6e-4)


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("method", METHODS)
def test_printed_averages_are_those_of_the_printed_rows(method, k):
    datasets = setting_datasets(k)
    mean = sum(published_auc(name, method, k).auc for name in datasets) / len(datasets)
    assert published_average(method, k, datasets) == pytest.approx(mean, abs=1.1e-3)


def test_five_anomalies_leave_out_two_tables():
    assert set(setting_datasets(3)) - set(setting_datasets(5)) == {"Parkinson", "Shuttle"}
    assert published_auc("Parkinson", "Proposed", 5) is None
    assert published_auc("Parkinson", "MADE", 5) is None


def test_methods_without_labels_are_the_same_for_every_k():
    for method in UNSUPERVISED:
        assert published_auc("Pima", method, 1) == published_auc("Pima", method, 5)


def test_an_average_over_other_tables_is_that_of_their_rows():
    some = ["Pima", "Wilt"]
    assert published_average("Proposed", 3, some) == pytest.approx((0.744 + 0.785) / 2)
    assert published_average("Proposed", 5, ["Pima", "Parkinson"]) is None
    assert published_average("Proposed", 3, []) is None
    assert published_average("fewlier", 3, some) is None


@pytest.mark.parametrize("dataset", setting_datasets(3))
def test_the_best_printed_auc_of_table_2_is_bold(dataset):
    row = [published_auc(dataset, method, 3) for method in METHODS]
    best = max(row, key=lambda cell: cell.auc)
    assert best.is_bold


def test_numbers_are_those_of_the_paper():
    assert published_auc("Annthyroid", "RF", 3) == (0.875, True)
    assert published_average("Proposed", 3, setting_datasets(3)) == 0.839
    assert [published_average(name, 5, setting_datasets(5)) for name in SUPERVISED] == [
        0.640,
        0.838,
        0.804,
        0.687,
        0.859,
    ]
    assert published_datasets()["KDDCup99"].training_seconds == 62.39
