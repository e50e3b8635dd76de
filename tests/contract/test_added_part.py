"""A part that is one class and one name in the registry works wherever scores do."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from factories import small, visits
from graphs import tensors_of
from medians import SHARE, Medians, registered
from typer.testing import CliRunner

from fewlier import AnomalyDetector, FormatError
from fewlier.cli.app import app
from fewlier.density.rows import Rows
from fewlier.export.onnx.check import made_up
from fewlier.export.onnx.export import operations_of
from fewlier.score.ensemble import Ensemble

N, N_ODD = 120, 8
NAMES = ["density", "neighbours", "trees", "rules", "medians"]


@pytest.fixture(scope="module", autouse=True)
def part():
    with registered():
        yield


@pytest.fixture(scope="module")
def detector():
    return small(max_epochs=3).fit(visits(n=N), np.arange(N) < N_ODD)


@pytest.fixture(scope="module")
def file(detector, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "medians.fewlier"
    detector.save(path)
    return path


def run(*words):
    done = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_it_takes_its_share_of_the_score_and_the_others_share_the_rest(detector):
    scorer = detector.model_.scorer
    assert [part.name for _, part in scorer.addends] == NAMES
    assert scorer.addends[-1].share == SHARE
    plain = {"density": 0.25, "neighbours": 0.75, "trees": 0, "rules": 0}
    learned = N_ODD / (1.6 * N_ODD + 4)
    plain = {name: share * (1 - learned) for name, share in plain.items()}
    plain |= dict.fromkeys(("trees", "rules"), learned / 2)
    for share, part in scorer.addends[:-1]:
        assert share == pytest.approx((1 - SHARE) * plain[part.name])


def test_scores_and_reasons_have_it(detector):
    fresh = visits(1, n=40)
    explained = detector.explain(fresh)
    total = explained.contributions.sum(1) + explained.baseline
    np.testing.assert_allclose(total, detector.anomaly_score(fresh), rtol=1e-9, atol=1e-9)
    assert "from the median of normal rows" in explained.meaning
    scorer, rows = detector.model_.scorer, Rows.of(detector.model_.encode(detector._table(fresh)))
    found, total = {}, 0
    for share, part in scorer.addends:
        found[part.name] = part.contributions(rows, found)
        total = total + share * found[part.name]
    torch.testing.assert_close(scorer.sum_of_parts(rows), total)
    squared = (rows.inputs.double() - detector.model_.parts["medians"].median).square().sum(1)
    assert np.corrcoef(found["medians"].sum(1), squared)[0, 1] == pytest.approx(1)


def test_it_comes_back_from_a_file_and_a_damaged_one_is_refused(detector, file):
    loaded, fresh = AnomalyDetector.load(file), visits(1, n=40)
    assert isinstance(loaded.model_.parts["medians"], Medians)
    np.testing.assert_array_equal(loaded.anomaly_score(fresh), detector.anomaly_score(fresh))
    state = detector.model_.parts["medians"].state()
    state.arrays["median"] = state.arrays["median"] + 9
    with pytest.raises(FormatError, match="median is out of range"):
        Medians.from_state(state, detector.model_.encoder, torch.device("cpu"))


def test_commands_score_explain_and_inspect_with_it(detector, file, tmp_path):
    fresh = visits(1, n=40)
    fresh.to_csv(tmp_path / "fresh.csv", index=False)
    run("score", tmp_path / "fresh.csv", "-m", file, "-o", tmp_path / "scored.csv")
    scored = pd.read_csv(tmp_path / "scored.csv")
    scores = detector.anomaly_score(fresh)
    np.testing.assert_allclose(scored["anomaly_score"], scores, rtol=1e-6)
    words = ("--top", 1, "--columns", fresh.shape[1])
    (row,) = run("explain", tmp_path / "fresh.csv", "-m", file, *words)["rows"]
    assert row["row"] == scores.argmax()
    expected = detector.explain(fresh).contributions[row["row"]]
    found = {reason["column"]: reason["contribution"] for reason in row["reasons"]}
    for name, own in zip(fresh, expected, strict=True):
        assert found.get(name, own) == pytest.approx(own)
    assert len(found) > 2
    facts = run("inspect", file)
    shares = {part.name: share for share, part in detector.model_.scorer.addends}
    assert facts["shares"] == pytest.approx(shares)
    assert facts["shares"][Ensemble.name] == pytest.approx(detector.model_.scorer.addends[0].share)


@pytest.mark.slow
def test_its_graph_is_traced_from_it(detector):
    model = detector.model_
    table, columns = made_up(model.encoder)
    graph = operations_of(model).module()
    found = graph(*tensors_of(model, columns)).anomaly_score
    scores = model.score(model.encoder.encode(table))
    np.testing.assert_allclose(found, scores, rtol=2e-5, atol=2e-5)
