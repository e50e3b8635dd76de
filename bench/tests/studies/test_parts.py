"""The study of parts: what is left out, and that nothing stays left out."""

import csv
from functools import partial

import numpy as np
import pytest

from fewlier import Made, Training
from fewlier.table import Table
from fewlier_bench.cli.studies import run_study
from fewlier_bench.comparison.parts_tables import DEFAULT, WITHOUT, part_tables, read_lines
from fewlier_bench.data.few_labels import draw_clean
from fewlier_bench.runs.stacks import SplitStack, fit_plans, given_rows
from fewlier_bench.studies import parts

pytestmark = pytest.mark.slow

TINY = {
    "density": Made(hidden=(8,), n_orderings=2),
    "training": Training(lambdas=(0, 10), max_epochs=5),
}


def made_up(seed=0):
    """Return a table in which anomalies are far out in one of three columns."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(260, 3)), (np.arange(260) < 40).astype(np.int8)
    X[y == 1] += 2.5 * np.eye(3)[np.arange(40) % 3]
    return X, y


@pytest.fixture(scope="module")
def scores():
    """Return the scores of one split by each variant, and what makes them."""
    X, y = made_up()
    stack = SplitStack.of_table(Table.of(X), TINY | {"device": "cpu"})
    split = draw_clean(y, 6, 0)
    plan = stack.plan(given_rows(split))
    test = plan.encoder.encode(stack.table.take(split.test))
    build = partial(parts.variants, plan, stack.recipe, test)
    return dict(build()), build, fit_plans([plan], stack.recipe)[0][0], test


def test_the_default_is_the_score_of_the_model_and_nothing_stays_left_out(scores):
    found, build, model, test = scores
    assert found[DEFAULT] + model.scorer.baseline == pytest.approx(model.score(test), abs=1e-6)
    again = dict(build())
    assert all((again[name] == found[name]).all() for name in found)


def test_each_variant_lacks_its_part_and_only_that(scores):
    found, _, model, test = scores
    whole = parts.score_parts(model.scorer, test)
    shares = {part.name: share for share, part in model.scorer.addends}
    for name in ("trees", "rules", "density"):
        assert found[name] == pytest.approx(found[DEFAULT] - shares[name] * whole[name])
    others = [found[name] for name in WITHOUT if name not in shares]
    assert all(not np.allclose(other, found[DEFAULT]) for other in others)
    learned = whole["trees"] + whole["rules"]
    assert found["labels 1.0"] == pytest.approx(learned / 2)
    assert np.corrcoef(found["labels 0.0"], learned)[0, 1] < 0.99
    alone = shares["neighbours"] * whole["neighbours"] + shares["density"] * whole["density"]
    assert np.argsort(found["labels 0.0"]).tolist() == np.argsort(alone).tolist()


def test_left_out_before_a_fit_is_what_its_name_says(scores):
    _, _, model, _ = scores
    scale = {"scale of normal scores": "standardised", "scale of deviations": "normal scores"}
    views = model.parts["neighbours"].views
    assert [v.space.coordinates.name for v in views] == list(scale.values())
    for part, kept in scale.items():
        with parts.leave_out(part):
            assert list(parts.neighbours.COORDINATES) == [kept]


def test_lines_are_computed_once_by_whichever_shard_has_them(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "DETECTOR", TINY | {"device": "cpu"})
    monkeypatch.setattr(parts, "POOLS", (parts.POOLS[0], parts.POOLS[2]))  # k = 0 and 25
    folder, out = tmp_path / "made", tmp_path / "parts.csv"
    folder.mkdir()
    for name in ("one", "two"):
        np.savez(folder / f"{name}.npz", **dict(zip("Xy", made_up(len(name)), strict=True)))
    run = ["run", "--data", str(folder), "--out", str(out), "--splits", "1", "--shard"]
    run_study("parts", [*run, "1/2"])
    first = out.read_text("utf-8")
    run_study("parts", [*run, "2/2"])
    run_study("parts", [*run, "1/1"])
    text = out.read_text("utf-8")
    assert text.startswith(first)
    lines = list(csv.DictReader(text.splitlines()))
    cells = [(r["table"], r["experiment"], r["k"], r["split"], r["variant"]) for r in lines]
    assert len(set(cells)) == len(cells)
    assert {r["reason"] for r in lines if r["k"] == "25"} == {"fewer than 3 test anomalies"}
    assert {r["variant"] for r in lines if r["k"] == "0"} == {
        DEFAULT,
        *(name for name, needs_labels in WITHOUT.items() if not needs_labels),
    }
    costs, curve, *_ = part_tables(read_lines(out))
    aucs = {
        name: np.mean([float(r["auc"]) for r in lines if r["k"] == "0" and r["variant"] == name])
        for name in (DEFAULT, "density")
    }
    shown = dict(zip(costs.rows, (v.ours for v in costs.columns[0].values), strict=True))
    assert shown["the score"] == pytest.approx(aucs[DEFAULT])
    assert shown["density"] == pytest.approx(aucs[DEFAULT] - aucs["density"])
    assert shown["trees"] is None
    assert curve.columns[-1].heading == DEFAULT
