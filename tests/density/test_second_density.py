"""A density is one file and one line: everything else finds it in the registry."""

import json

import numpy as np
import pytest
from contracts import load_contract, run_contract
from factories import payments, small, visits
from independent import Independent
from sklearn.model_selection import GridSearchCV

from fewlier import AnomalyDetector, FormatError, cli
from fewlier.density import DENSITIES

pytestmark = pytest.mark.slow

LABELS = np.repeat([1, 0], [6, 114])


@pytest.fixture(autouse=True)
def further(monkeypatch):
    """Add the density to the registry, which is all that a contributor does."""
    monkeypatch.setitem(DENSITIES, "independent", Independent)


def test_the_contract_holds_for_it():
    assert run_contract(load_contract("test_densities.py"), "independent") > 10


@pytest.mark.parametrize("density", ["independent", Independent(n_draws=3)])
@pytest.mark.parametrize("selection", ["average", "best"])
def test_it_fits_explains_updates_and_survives_a_file(density, selection, tmp_path):
    detector = small(selection=selection, max_epochs=2).set_params(density=density)
    detector.fit(visits(), LABELS).save(tmp_path / "a.fewlier")
    loaded = AnomalyDetector.load(tmp_path / "a.fewlier")
    rows = visits(1)
    np.testing.assert_array_equal(loaded.anomaly_score(rows), detector.anomaly_score(rows))
    assert repr(loaded.density) == repr(density)
    explained = loaded.explain(rows)
    total = explained.contributions.sum(1) + explained.remainder + explained.baseline
    np.testing.assert_allclose(total, loaded.anomaly_score(rows), rtol=1e-6)
    assert np.isfinite(loaded.update(rows, LABELS).anomaly_score(rows)).all()


def test_a_file_of_a_density_that_is_not_there_is_refused(tmp_path, monkeypatch):
    small(max_epochs=1).set_params(density="independent").fit(visits()).save(tmp_path / "a")
    monkeypatch.delitem(DENSITIES, "independent")
    with pytest.raises(FormatError, match="density"):
        AnomalyDetector.load(tmp_path / "a")


def test_the_command_line_has_it(tmp_path, monkeypatch, capsys):
    payments().to_csv(tmp_path / "train.csv", index=False)
    model = str(tmp_path / "a.fewlier")
    command = ["fewlier", "fit", str(tmp_path / "train.csv"), "--label", "fraud", "-o", model]
    command += ["--density", "independent", "--density-option", "n_draws=3", "--max-epochs", "1"]
    for arguments in (command, ["fewlier", "inspect", model, "--json"]):
        capsys.readouterr()
        monkeypatch.setattr("sys.argv", arguments)
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert not end.value.code
    facts = json.loads(capsys.readouterr().out)
    expected = {"name": "independent", "n_draws": 3, "n_components": 2}
    assert facts["density"] == facts["parameters"]["density"] == expected


def test_a_search_goes_through_its_settings():
    grid = {"density": ["made", Independent()], "density__n_components": [1, 2]}
    search = GridSearchCV(small(max_epochs=1), grid, scoring="roc_auc", cv=2, error_score="raise")
    search.fit(visits(), LABELS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    found = [type(density).__name__ for density in search.cv_results_["param_density"]]
    assert found == ["str", "str", "Independent", "Independent"]
    assert search.best_estimator_.density.n_components in (1, 2)
