"""Several conditionals may score one coding: each column has its own, by name."""

import json
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
from contracts import load_contract, run_contract
from factories import small
from negative_binomial import LARGEST_LOG_RATIO, USUAL_SIZE, NegativeBinomial
from scipy import stats
from sklearn.model_selection import GridSearchCV

from fewlier import AnomalyDetector, FormatError, UserError, cli
from fewlier.density import DENSITIES
from fewlier.density.conditionals import CONDITIONALS
from fewlier.density.conditionals.poisson import Poisson

pytestmark = pytest.mark.slow

NAME = "negative_binomial"
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "visits": RNG.poisson(30, 300) * (np.arange(300) != 7),  # counts begin at 0 or 1
        "calls": RNG.poisson(40, 300) * (np.arange(300) != 7),
        "amount": RNG.normal(size=300),
        "insured": RNG.integers(0, 2, 300),
    }
)
LABELS = np.arange(300) % 30 == 3
QUICK = {"max_epochs": 2, "latent": 2, "n_samples": 2, "n_transforms": 2}


@pytest.fixture
def second(monkeypatch):
    """Add the conditional to the registry, which is all that a contributor does."""
    monkeypatch.setitem(CONDITIONALS, NAME, NegativeBinomial)


def scored_by(detector):
    """Return which class scores each column."""
    groups = detector.model_.ensemble.density.joint.groups
    names = detector.model_.encoder.schema.names
    return {names[d]: type(g.conditional) for g in groups for d in g.columns.tolist()}


@pytest.mark.parametrize("density", DENSITIES)
def test_a_second_conditional_changes_nothing_for_who_does_not_name_it(density, monkeypatch):
    before = small(density=density, **QUICK).fit(TABLE, LABELS).anomaly_score(TABLE)
    monkeypatch.setitem(CONDITIONALS, NAME, NegativeBinomial)
    after = small(density=density, **QUICK).fit(TABLE, LABELS)
    np.testing.assert_array_equal(after.anomaly_score(TABLE), before)
    assert NegativeBinomial not in scored_by(after).values()


@pytest.mark.usefixtures("second")
@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"visits": NAME}, {"visits": NegativeBinomial, "calls": Poisson}),
        ({"visits": NAME, "calls": "poisson"}, {"visits": NegativeBinomial, "calls": Poisson}),
        (NAME, {"visits": NegativeBinomial, "calls": NegativeBinomial}),
        ("poisson", {"visits": Poisson, "calls": Poisson}),
    ],
)
def test_each_column_has_the_conditional_that_was_named_for_it(columns, expected):
    detector = small(columns=columns, max_epochs=1).fit(TABLE, LABELS)
    found = scored_by(detector)
    assert {name: found[name] for name in expected} == expected
    is_named = {name: cls is NegativeBinomial for name, cls in expected.items()}
    kinds = detector.summary_.kinds
    assert {n: k for n, k in kinds.items() if n in expected} == {
        name: f"count, scored by {NAME}" if named else "count" for name, named in is_named.items()
    }


@pytest.mark.usefixtures("second")
def test_a_conditional_may_come_with_how_its_numbers_are_written():
    written = TABLE.assign(visits=[f"{n}.000" for n in TABLE["visits"]])
    detector = small(columns={"visits": f"{NAME}:1.000,0"}, max_epochs=1).fit(written, LABELS)
    assert scored_by(detector)["visits"] is NegativeBinomial
    column = detector.model_.encoder.schema.columns[0]
    assert column.conform(np.array(["3.000"], dtype=object))[0] == 3000


@pytest.mark.usefixtures("second")
def test_the_command_line_has_it(tmp_path, monkeypatch, capsys):
    TABLE.assign(odd=LABELS.astype(int)).to_csv(tmp_path / "a.csv", index=False)
    given = [str(tmp_path / "a.csv"), "--label", "odd", "--column", f"visits={NAME}"]
    model = str(tmp_path / "a.fewlier")
    output = {}
    for command in (["check", *given], ["fit", *given, "-o", model, "--max-epochs", "1"]):
        monkeypatch.setattr("sys.argv", ["fewlier", *command])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert not end.value.code
        output[command[0]] = capsys.readouterr().out
    assert f"--column visits={NAME}" in output["check"]
    assert f"count, scored by {NAME}" in output["fit"]
    assert scored_by(AnomalyDetector.load(model))["visits"] is NegativeBinomial


@pytest.mark.usefixtures("second")
def test_a_search_compares_it_with_the_usual_one():
    grid = {"columns": [{"visits": "count"}, {"visits": NAME}]}
    search = GridSearchCV(small(max_epochs=1), grid, scoring="roc_auc", cv=2, error_score="raise")
    search.fit(TABLE, LABELS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.usefixtures("second")
@pytest.mark.parametrize("density", DENSITIES)
def test_the_choice_is_in_the_file(density, tmp_path):
    choice = {"visits": NAME}
    detector = small(columns=choice, density=density, **QUICK).fit(TABLE, LABELS)
    detector.save(tmp_path / "a.fewlier")
    loaded = AnomalyDetector.load(tmp_path / "a.fewlier")
    assert scored_by(loaded) == scored_by(detector)
    assert scored_by(loaded)["visits"] is NegativeBinomial
    np.testing.assert_array_equal(loaded.anomaly_score(TABLE), detector.anomaly_score(TABLE))
    assert loaded.columns == choice
    expected = loaded.explain(TABLE[:3]).expected
    assert (expected.low[::4] <= expected.high[::4]).all()
    loaded.update(TABLE[:60], LABELS[:60])
    assert scored_by(loaded) == scored_by(detector)
    with ZipFile(tmp_path / "a.fewlier") as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".json")]
        columns = json.loads(archive.read(name))["model"]["encoder"]["schema"]["columns"]
    assert [column["conditional"] for column in columns] == [NAME, None, None, None]


def test_a_file_that_names_an_unknown_conditional_is_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(CONDITIONALS, NAME, NegativeBinomial)
        small(columns={"visits": NAME}, max_epochs=1).fit(TABLE, LABELS).save(tmp_path / "a")
    with pytest.raises(FormatError, match="'visits' is scored by an unknown 'negative_binomial'"):
        AnomalyDetector.load(tmp_path / "a")


@pytest.mark.usefixtures("second")
def test_a_conditional_that_cannot_score_a_column_is_an_error():
    with pytest.raises(UserError, match="'amount' is declared 'count' but has"):
        small(columns={"amount": NAME}).fit(TABLE, LABELS)


@pytest.mark.usefixtures("second")
def test_the_contract_holds_for_it():
    contract = load_contract("test_conditionals.py")

    def log_mass(phi, x):
        log_m, log_r = phi
        m = np.maximum(contract.MEANS, 1e-3) * np.exp(contract.bounded(log_m, 15))
        r = USUAL_SIZE * np.exp(contract.bounded(log_r, LARGEST_LOG_RATIO))
        return stats.nbinom.logpmf(x, r, r / (r + m))

    targets = [0, 1, 2, 40, 1000, 1e6]
    contract.CASES[NAME] = contract.case(targets, lambda: contract.integers(20_000), log_mass)
    assert NAME in contract.NUMBERS
    assert run_contract(contract, NAME) > 10
