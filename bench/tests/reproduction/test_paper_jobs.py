import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from fewlier import AnomalyDetector, FewlierWarning, Made, Training, UserError, Vae
from fewlier_bench.data import (
    THREE_VALIDATION_ANOMALIES,
    load_dataset,
    make_paper_split,
    scale_columns,
)
from fewlier_bench.methods.baselines import fit_baseline
from fewlier_bench.reproduction.baseline_jobs import measure_baseline
from fewlier_bench.reproduction.detector_jobs import measure_stack
from fewlier_bench.reproduction.experiments import METHODS
from fewlier_bench.reproduction.paper_jobs import (
    QUICK_TABLES,
    PaperScope,
    find_sources,
    make_jobs,
    make_scope,
)
from fewlier_bench.reproduction.protocol import PAPER_PROTOCOL
from fewlier_bench.runs import stacks
from fewlier_bench.runs.execution import execute
from fewlier_bench.runs.measuring import Source
from fewlier_bench.runs.results import Cell, Store

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("data")]

SMALL = replace(
    PAPER_PROTOCOL,
    lambdas=(0.0, 10.0, 1000.0),
    hidden=(16,),
    n_orderings=2,
    max_epochs=15,
    vae_hidden=(8,),
    vae_latent=2,
)


def cells(dataset, *methods, k=(1, 3), splits=(0, 1), experiment="paper"):
    return [
        Cell(experiment, dataset, method, n, split)
        for method in methods
        for n in k
        for split in splits
    ]


def rows_of(dataset, cell, protocol=SMALL):
    """Return training, validation and test rows of a cell, as a user would make them."""
    table = load_dataset(dataset)
    X = scale_columns(table.X)
    split = make_paper_split(table.y, cell.split, cell.k, protocol.splits)
    return [(X[part], table.y[part]) for part in (split.training, split.validation, split.test)]


def detector_scores(dataset, cell, **settings):
    training, validation, test = rows_of(dataset, cell)
    detector = AnomalyDetector(random_state=cell.split, device="cpu", **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewlierWarning)
        detector.fit(*training, validation=validation)
    return detector, test[1], detector.anomaly_score(test[0])


def small_scope(experiment, protocol=SMALL, **choice):
    return replace(make_scope(experiment, device="cpu", **choice), protocol=protocol)


# What is measured.


def test_the_papers_settings_are_those_that_the_detector_documents():
    published = AnomalyDetector.as_published()
    assert published.training.lambdas == PAPER_PROTOCOL.lambdas
    published.set_params(training__lambdas=PAPER_PROTOCOL.lambdas)  # written 0.0 there, and 0 here
    assert repr(AnomalyDetector(**PAPER_PROTOCOL.proposed())) == repr(published)
    published.set_params(density=Vae(n_components=1), training__lambdas=(0.0,))
    assert repr(AnomalyDetector(**PAPER_PROTOCOL.vae())) == repr(published)


def test_every_split_of_a_stack_is_the_detector_fitted_alone():
    asked = cells("Stamps", "Proposed", "MADE", k=(1, 3))
    found = dict(measure_stack(Source.find("Stamps"), SMALL, "Proposed", "cpu", asked))
    assert list(found) == sorted(asked, key=lambda c: (c.split, c.k, asked.index(c)))
    for cell, row in found.items():
        settings = SMALL.single(0.0) if cell.method == "MADE" else SMALL.proposed()
        detector, y, scores = detector_scores("Stamps", cell, **settings)
        (kept,) = (line for line in detector.history_ if line.status == "kept")
        assert row.auc == pytest.approx(roc_auc_score(y, scores), abs=1e-9)
        assert row.average_precision == pytest.approx(average_precision_score(y, scores))
        assert row.validation_auc == pytest.approx(kept.criterion)
        if cell.method == "Proposed":
            assert (row.parameter, row.value) == ("lambda", f"{kept.lam:g}")
        else:
            assert (row.parameter, row.value) == ("epoch", str(kept.best_epoch))


def test_the_vae_of_a_stack_is_the_detector_fitted_alone():
    asked = cells("Parkinson", "VAE", k=(3,))
    for cell, row in measure_stack(Source.find("Parkinson"), SMALL, "VAE", "cpu", asked):
        detector, y, scores = detector_scores("Parkinson", cell, **SMALL.vae())
        assert row.auc == pytest.approx(roc_auc_score(y, scores), abs=1e-9)
        assert (row.parameter, row.value) == ("epoch", str(detector.history_[0].best_epoch))


def test_the_default_detector_is_given_training_and_validation_rows_without_saying_which(
    monkeypatch,
):
    def small(**settings):
        tiny = {
            "density": Made(hidden=(8,), n_orderings=2),
            "training": Training(lambdas=(0, 10), max_epochs=10),
        }
        return AnomalyDetector(**tiny | settings)

    monkeypatch.setattr(stacks, "AnomalyDetector", small)
    asked = cells("Stamps", "fewlier", k=(3,))
    for cell, row in measure_stack(Source.find("Stamps"), SMALL, "fewlier", "cpu", asked):
        (training, labels), (validation, more), (test, y) = rows_of("Stamps", cell)
        detector = small(random_state=cell.split, device="cpu", false_alarm_rate=0.2)
        detector.fit(np.concatenate([training, validation]), np.concatenate([labels, more]))
        assert row.auc == pytest.approx(roc_auc_score(y, detector.anomaly_score(test)), abs=1e-9)
        assert row.validation_auc is None
        assert (row.parameter, row.value) == ("members", str(len(detector.model_.ensemble.members)))


def test_proposed_is_the_best_of_its_lambdas_and_made_is_lambda_0():
    names = ["lambda=0", "lambda=10", "lambda=1000"]
    asked = [
        *cells("HeartDisease", "MADE", "Proposed", k=(3,), splits=range(3)),
        *cells("HeartDisease", *names, k=(3,), splits=range(3), experiment="lambdas"),
    ]
    found = dict(measure_stack(Source.find("HeartDisease"), SMALL, "Proposed", "cpu", asked))
    for split in range(3):
        at = {cell.method: row for cell, row in found.items() if cell.split == split}
        assert at["MADE"] == at["lambda=0"]
        chosen = at[f"lambda={at['Proposed'].value}"]
        assert at["Proposed"].auc == chosen.auc
        assert chosen.validation_auc == max(at[name].validation_auc for name in names)
        assert at["Proposed"].seconds == pytest.approx(3 * chosen.seconds)


def test_what_is_computed_together_does_not_matter():
    source = Source.find("Parkinson")
    asked = cells("Parkinson", "MADE", "Proposed", k=(1, 3), splits=(0, 1))
    together = dict(measure_stack(source, SMALL, "Proposed", "cpu", asked))
    for cell in asked[1::3]:
        ((_, alone),) = measure_stack(source, SMALL, "Proposed", "cpu", [cell])
        assert alone.auc == pytest.approx(together[cell].auc, abs=1e-9)
        assert alone.value == together[cell].value


def test_a_member_that_diverges_is_a_reason(monkeypatch):
    fit = stacks.fit_each_lambda
    lost = 10.0

    def without(plans, recipe):
        found = fit(plans, recipe)
        for models, _ in found:
            del models[lost]
        return found

    monkeypatch.setattr(stacks, "fit_each_lambda", without)
    asked = cells("Parkinson", "lambda=10", "lambda=0", k=(1,), splits=(0,))
    found = dict(measure_stack(Source.find("Parkinson"), SMALL, "Proposed", "cpu", asked))
    assert found[asked[0]].reason == "its likelihoods ceased to be finite"
    assert found[asked[0]].auc is None
    assert found[asked[1]].auc is not None


@pytest.mark.parametrize("method", ["LOF", "IF", "KNN", "RF"])
def test_baselines_are_fitted_on_the_rows_of_each_k(method):
    asked = cells("Stamps", method, k=(1, 3, 5), splits=(1,))
    for cell, row in measure_baseline(Source.find("Stamps"), PAPER_PROTOCOL, asked):
        training, validation, (test, y) = rows_of("Stamps", cell)
        alone = fit_baseline(method, *training, *validation, seed=1)
        assert row.auc == pytest.approx(roc_auc_score(y, alone.anomaly_score(test)))
        assert (row.parameter, row.value) == (alone.baseline.parameter, f"{alone.value:g}")
        assert row.validation_auc == alone.validation_auc
        assert row.seconds > 0


# Which jobs there are.


def test_the_papers_experiment_has_a_row_for_every_table_method_k_and_split():
    scope = make_scope("paper")
    jobs = make_jobs(scope, [Source.find(name) for name in QUICK_TABLES], Store("none"))
    found = Counter(cell for job in jobs for cell in job.cells)
    assert set(found.values()) == {1}
    per_k = Counter((cell.experiment, cell.k) for cell in found)
    for k, n_tables in ((1, 3), (3, 3), (5, 2)):  # Parkinson has too few for five
        assert per_k["paper", k] == n_tables * 11 * 10
        assert per_k["lambdas", k] == n_tables * 7 * 10
    assert {cell.dataset for cell in found if cell.k == 5} == {"HeartDisease", "Stamps"}
    stacks = [job for job in jobs if any(cell.method == "Proposed" for cell in job.cells)]
    assert len(stacks) == 3  # one per table


def test_some_of_it_can_be_run():
    scope = make_scope("paper", methods=["LOF", "MADE"], anomalies=[3], n_splits=2)
    jobs = make_jobs(scope, [Source.find("Stamps")], Store("none"))
    found = [cell for job in jobs for cell in job.cells]
    assert sorted(found) == sorted(cells("Stamps", "LOF", "MADE", k=(3,)))


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"methods": ["LOF", "PCA"]}, r"A method must be one of LOF, .* 'paper'; got PCA"),
        ({"anomalies": [2]}, r"labelled anomalies must be one of 1, 3, 5 .*; got 2"),
        ({"n_splits": 11}, r"The number of splits must be one of 1, .* 10 .*; got 11"),
    ],
)
def test_what_an_experiment_does_not_have_is_refused(choice, message):
    with pytest.raises(UserError, match=message):
        make_scope("paper", **choice)
    with pytest.raises(UserError, match="one of 3 in the experiment 'deduplicated'; got 1"):
        make_scope("deduplicated", anomalies=[1])


def test_a_table_that_is_not_here_is_an_error_before_anything_runs():
    assert [source.name for source in find_sources("paper", ["stamps"])] == ["Stamps"]
    with pytest.raises(UserError, match=r"Annthyroid must be in \$FEWLIER_DATA.*datasets get Ann"):
        find_sources("paper")


def test_without_duplicates_there_are_other_tables():
    (source,) = find_sources("deduplicated", ["Wilt"])
    assert (source.name, source.n_rows) == ("Wilt", 4655)
    (job,) = make_jobs(make_scope("deduplicated"), [source], Store("none"))
    expected = cells(
        "Wilt", "MADE", "Proposed", k=(3,), splits=range(10), experiment="deduplicated"
    )
    assert sorted(job.cells) == sorted(expected)
    assert job.sha256 == source.sha256
    with pytest.raises(UserError, match="Stamps"):
        find_sources("deduplicated", ["Stamps"])


def test_three_anomalies_validate_whatever_k_is(tmp_path):
    experiment = "three_validation_anomalies"
    scope = small_scope(experiment, methods=["MADE"], n_splits=1)
    execute(make_jobs(scope, [Source.find("Stamps")], Store(tmp_path)), Store(tmp_path), workers=1)
    rows = Store(tmp_path).read(experiment)
    assert [(row.method, row.k) for row in rows] == [("MADE", 1), ("MADE", 5)]
    table = load_dataset("Stamps")
    X = scale_columns(table.X)
    for row in rows:
        split = make_paper_split(table.y, 0, row.k, THREE_VALIDATION_ANOMALIES)
        assert table.y[split.validation].sum() == 3
        detector = AnomalyDetector(**SMALL.single(0.0), random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewlierWarning)
            detector.fit(
                X[split.training],
                table.y[split.training],
                validation=(X[split.validation], table.y[split.validation]),
            )
        auc = roc_auc_score(table.y[split.test], detector.anomaly_score(X[split.test]))
        assert row.auc == pytest.approx(auc, abs=1e-6)


def test_times_take_the_lambda_that_was_chosen(tmp_path):
    store, sources = Store(tmp_path), [Source.find("Parkinson")]
    scope = small_scope("times")
    with pytest.raises(UserError, match=r"must have the lambda .* on Parkinson with k = 3 in spl"):
        make_jobs(scope, sources, store)
    paper = small_scope("paper", methods=["Proposed"], anomalies=[3], n_splits=1)
    execute(make_jobs(paper, sources, store), store, workers=1)
    execute(make_jobs(scope, sources, store), store, workers=1)
    (chosen,), (timed,) = store.read("paper"), store.read("times")
    assert (timed.parameter, timed.value) == ("lambda", chosen.value)
    assert timed.auc == pytest.approx(chosen.auc, abs=1e-6)
    assert timed.seconds > 0


def test_one_process_and_two_give_the_same_rows(tmp_path):
    scope = small_scope("paper", methods=["LOF", "RF", "Proposed"], anomalies=[3], n_splits=2)
    found = []
    for workers in (1, 2):
        store = Store(tmp_path / str(workers))
        jobs = make_jobs(scope, [Source.find("Parkinson")], store)
        execute(jobs, store, workers=workers)
        found.append({row[:4]: row[5:] for row in map(_essence, store.read("paper"))})
    assert found[0] == found[1]
    assert len(found[0]) == 6


def _essence(row):
    return row.dataset, row.method, row.k, row.split, row.seed, row.value, row.auc, row.reason


def test_a_scope_is_the_whole_experiment_unless_less_is_asked_for():
    scope = make_scope("paper")
    assert isinstance(scope, PaperScope)
    assert scope.protocol == PAPER_PROTOCOL
    assert scope.design.methods == (*METHODS, "fewlier")
