"""Labels as people have them, from the option to what each command makes of it."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from factories import FEATURES, payments
from processes import plain
from sklearn.metrics import roc_auc_score

from fewlier import AnomalyDetector

ROWS = payments(150, seed=1).drop(columns="id")
IS_FRAUD = ROWS["fraud"] == 1
# Eight frauds of two kinds, one of them rare, and some rows of which nothing is known.
KINDS = pd.Series(np.where(ROWS["fraud"].isna(), "", np.where(IS_FRAUD, "theft", "fine")))
KINDS[IS_FRAUD[IS_FRAUD].index[:2]] = "Forgery "


def csv(labels, rows=ROWS):
    return rows.assign(fraud=labels).to_csv(index=False).encode()


GAPS = {
    "1 and empty cells": (csv(IS_FRAUD.map({True: "1", False: ""})), []),
    "1.0 and empty cells": (csv(IS_FRAUD.map({True: 1.0, False: np.nan})), []),
    "true and empty cells": (csv(IS_FRAUD.map({True: True, False: None})), []),
    "a word and empty cells": (csv(KINDS.where(KINDS == "theft", "")), ["--anomaly", "theft"]),
    "parquet": (ROWS.assign(fraud=IS_FRAUD.map({True: 1.0, False: None})).to_parquet(), []),
}


@pytest.fixture
def fitted(fewlier, quick, tmp_path):  # noqa: ARG001 - quick takes effect
    """Return a function that fits a model to a table on standard input."""

    def fit(content, *options):
        path = tmp_path / "new.fewlier"
        done = fewlier("fit", "-", "--label", "fraud", "-o", path, *options, stdin=content)
        assert done.code == 0, done.err
        return done, AnomalyDetector.load(path).summary_

    return fit


def n_rows(summary):
    return summary.n_normal, summary.n_anomaly, summary.n_unlabelled


@pytest.mark.slow
@pytest.mark.parametrize(("content", "options"), GAPS.values(), ids=GAPS)
def test_fit_takes_a_column_of_anomalies_and_gaps(content, options, fitted):
    n_anomaly = 6 if options else 8
    done, summary = fitted(content, *options)
    assert n_rows(summary) == (0, n_anomaly, 150 - n_anomaly)
    assert "fewlier: warning" not in done.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "options"), [GAPS["1 and empty cells"], GAPS["a word and empty cells"]]
)
def test_update_and_evaluate_take_a_column_of_anomalies_and_gaps(content, options, model, fewlier):
    arguments = ["--label", "fraud", *options]
    before = n_rows(AnomalyDetector.load(model).summary_)
    found = fewlier("evaluate", "-", "-m", model, *arguments, "--json", stdin=content)
    assert found.code == 0, found.err
    facts = json.loads(found.out)
    n_anomaly = 6 if options else 8
    assert (facts["n_normal"], facts["n_anomaly"], facts["compared_with"]) == (
        *(0, n_anomaly),
        "unlabelled",
    )
    done = fewlier("update", model, "-", *arguments, stdin=content)
    assert done.code == 0, done.err
    after = n_rows(AnomalyDetector.load(model).summary_)
    anomalies = ROWS[FEATURES][(KINDS == "theft") if options else IS_FRAUD]
    is_known = anomalies.merge(payments()[FEATURES], how="left", indicator=True)["_merge"] == "both"
    assert len(anomalies) == n_anomaly
    assert after[1] == before[1] + (~is_known).sum()
    assert after[0] == before[0]


@pytest.mark.slow
def test_a_validation_table_may_have_anomalies_and_gaps(fitted, tmp_path):
    content = GAPS["1 and empty cells"][0]
    (tmp_path / "validation.csv").write_bytes(content)
    _, summary = fitted(content, "--validation", tmp_path / "validation.csv")
    assert n_rows(summary) == (0, 8, 142)
    assert summary.criterion == "smooth_auc"


@pytest.mark.slow
def test_a_report_takes_a_column_of_anomalies_and_gaps(model, fewlier, tmp_path):
    page = tmp_path / "report.html"
    content = GAPS["1 and empty cells"][0]
    done = fewlier("report", "-", "-m", model, "--label", "fraud", "-o", page, stdin=content)
    assert done.code == 0, done.err
    html = plain(page.read_text("utf-8"))
    assert "the 142 unlabelled rows are compared with the 8 anomalies" in html
    assert "of unlabelled rows" in html
    assert "rows labelled normal" not in html


def test_unlabelled_rows_that_stand_in_for_normals_are_said_to(model, fewlier):
    content = GAPS["1 and empty cells"][0]
    shown = fewlier("evaluate", "-", "-m", model, "--label", "fraud", stdin=content).out.decode()
    assert "rows               0 normal, 8 anomalous, 142 unlabelled\n" in shown
    assert "the unlabelled rows stand in for normals" in shown
    assert "of the unlabelled rows are" in shown
    scores = AnomalyDetector.load(model).anomaly_score(ROWS[FEATURES])
    assert f"AUC                {roc_auc_score(IS_FRAUD, scores):.4f}\n" in shown


@pytest.mark.parametrize("options", [[], ["--anomaly", "theft"], ["--normal", "fine"]])
def test_a_column_without_a_label_fits_without_labels_and_says_so(options, fitted):
    done, summary = fitted(csv(""), *options)
    assert n_rows(summary) == (0, 0, 150)
    note = "Label column 'fraud' is empty: all 150 rows are unlabelled."
    assert f"fewlier: note: standard input: {note}" in done.err
    assert note in summary.notes


@pytest.mark.slow
def test_every_anomaly_that_is_named_counts_whatever_its_case(fitted):
    done, summary = fitted(csv(KINDS), "--anomaly", "THEFT", "--anomaly", " forgery")
    assert n_rows(summary) == (112, 8, 30)
    assert summary.labelled_kinds == {"theft": 6, "Forgery": 2}
    assert "note: standard input: Values not named as anomalies count as normal" in done.err
    assert re.search(r"kinds +'theft' 6; 'Forgery' 2\n", done.out.decode())


@pytest.mark.slow
def test_values_that_train_as_normal_are_listed_and_stay_in_the_model(fitted):
    done, summary = fitted(csv(KINDS), "--anomaly", "theft")
    note = (
        "Values not named as anomalies count as normal, in label column 'fraud': 'fine' 112; "
        "'Forgery' 2."
    )
    assert f"fewlier: note: standard input: {note}" in done.err
    assert note in summary.notes
    assert "Values not named" not in done.out.decode()  # it is said once


@pytest.mark.slow
def test_normal_alone_makes_kinds_of_the_rest(fitted, fewlier, tmp_path):
    done, summary = fitted(csv(KINDS), "--normal", "fine", "--json")
    assert n_rows(summary) == (112, 8, 30)
    assert json.loads(done.out)["labelled_kinds"] == {"theft": 6, "Forgery": 2}
    shown = fewlier("inspect", tmp_path / "new.fewlier").out.decode()
    assert "kinds       'theft' 6; 'Forgery' 2\n" in shown


@pytest.mark.slow
def test_with_both_options_the_rest_is_unlabelled(fitted):
    done, summary = fitted(csv(KINDS), "--anomaly", "theft", "--normal", "fine")
    assert n_rows(summary) == (112, 6, 32)
    assert "leave their rows unlabelled, in label column 'fraud': 'Forgery' 2." in done.err


@pytest.mark.slow
def test_a_near_miss_is_a_warning_and_stays_in_the_model(fitted):
    labels = KINDS.copy()
    labels[KINDS[KINDS == "theft"].index[0]] = "teft"
    done, summary = fitted(csv(labels), "--anomaly", "theft")
    warning = "Label 'teft' (1 row) is close to 'theft' but counts as normal."
    assert f"fewlier: warning: standard input: {warning}" in done.err
    assert any(note.startswith(warning) for note in summary.notes)


@pytest.mark.slow
def test_a_validation_table_may_lack_a_kind_that_training_has(fitted, tmp_path):
    (tmp_path / "validation.csv").write_bytes(csv(KINDS.replace("Forgery ", "fine")))
    _, summary = fitted(
        *(csv(KINDS), "--anomaly", "theft", "--anomaly", "forgery"),
        *("--validation", tmp_path / "validation.csv"),
    )
    assert summary.labelled_kinds == {"theft": 6, "Forgery": 2}


BY_KIND = []


@pytest.fixture
def by_kind(fitted, tmp_path):
    """Return the path of a model that knows thefts only, fitted once for all tests."""
    path = tmp_path / "new.fewlier"
    if not BY_KIND:
        fitted(csv(KINDS.replace("Forgery ", "")), "--anomaly", "theft")
        BY_KIND.append(path.read_bytes())
    path.write_bytes(BY_KIND[0])
    return path


@pytest.mark.slow
def test_an_evaluation_compares_each_kind_with_all_normals(by_kind, fewlier):
    arguments = ["evaluate", "-", "-m", by_kind, "--label", "fraud", "--normal", "fine"]
    done = fewlier(*arguments, "--json", stdin=csv(KINDS))
    assert done.code == 0, done.err
    detector = AnomalyDetector.load(by_kind)
    scores = detector.anomaly_score(ROWS[FEATURES])
    expected = []
    for kind, n_trained, is_few in (("theft", 6, True), ("Forgery", 0, True)):
        own, judged = KINDS.str.strip() == kind, KINDS.isin(["fine"]) | (KINDS.str.strip() == kind)
        auc = roc_auc_score(own[judged], scores[judged])
        recall = (scores[own] > detector.threshold_).mean()
        facts = {"kind": kind, "n_rows": int(own.sum()), "auc": pytest.approx(auc)}
        facts |= {"recall": recall, "is_few": is_few, "n_in_training": n_trained}
        expected.append(facts)
    assert json.loads(done.out)["by_kind"] == expected
    shown = plain(fewlier(*arguments, stdin=csv(KINDS)).out.decode())
    assert re.search(
        r"by kind rows AUC recall [─ ]+theft 6 [01]\.\d+ [\d.]+% 6 labelled in training", shown
    )
    assert re.search(r"Forgery 2 .* never labelled in training; few rows: a rough guess", shown)


def test_a_model_that_knows_no_kinds_says_nothing_of_those_in_training(model, fewlier):
    arguments = ["evaluate", "-", "-m", model, "--label", "fraud", "--normal", "fine"]
    assert "in training" not in fewlier(*arguments, stdin=csv(KINDS)).out.decode()
    found = json.loads(fewlier(*arguments, "--json", stdin=csv(KINDS)).out)
    assert [line["n_in_training"] for line in found["by_kind"]] == [None, None]


@pytest.mark.slow
def test_an_update_adds_to_the_kinds(by_kind, fewlier):
    arguments = ["update", by_kind, "-", "--label", "fraud", "--normal", "FINE"]
    done = fewlier(*arguments, stdin=csv(KINDS.replace("theft", "Theft")))
    assert done.code == 0, done.err
    kinds = AnomalyDetector.load(by_kind).summary_.labelled_kinds
    assert kinds == {"theft": 6, "Forgery": 2}  # rows that were labelled already count once


@pytest.mark.slow
def test_explain_shows_the_kinds_of_rows(by_kind, fewlier):
    arguments = ["explain", "-", "-m", by_kind, "--top", 150]
    label = ["--label", "fraud", "--normal", "fine"]
    done = fewlier(*arguments, *label, "--json", stdin=csv(KINDS))
    assert done.code == 0, done.err
    for record in json.loads(done.out)["rows"]:
        text = KINDS[record["row"]].strip()
        label_and_kind = {"fine": ("normal", None), "": (None, None)}.get(text, ("anomaly", text))
        assert (record["label"], record["kind"]) == label_and_kind
    shown = fewlier(*arguments, *label, stdin=csv(KINDS)).out.decode()
    assert re.search(r"p-value +label +what adds most", shown)
    assert len(re.findall(r" Forgery ", shown.split("by kind")[0])) == 2
    assert "label" not in json.loads(fewlier(*arguments, "--json", stdin=csv(KINDS)).out)["rows"][0]


@pytest.mark.slow
def test_explain_compares_each_kind_unless_rows_were_chosen(by_kind, fewlier):
    arguments = ["-", "-m", by_kind, "--label", "fraud", "--normal", "fine"]
    judged = fewlier("evaluate", *arguments, "--json", stdin=csv(KINDS))
    done = fewlier("explain", *arguments, "--json", stdin=csv(KINDS))
    found = json.loads(done.out)["by_kind"]
    assert found == json.loads(judged.out)["by_kind"]
    assert [line["kind"] for line in found] == ["theft", "Forgery"]
    shown = plain(fewlier("explain", *arguments, stdin=csv(KINDS)).out.decode())
    assert re.search(r"by kind rows AUC recall [─ ]+theft 6 .* Forgery 2 ", shown)
    chosen = ["explain", *arguments, "--row", 3]
    assert "by_kind" not in json.loads(fewlier(*chosen, "--json", stdin=csv(KINDS)).out)
    assert b"by kind" not in fewlier(*chosen, stdin=csv(KINDS)).out


COMMANDS = {
    "update": ["update", "MODEL", "-"],
    "evaluate": ["evaluate", "-", "-m", "MODEL"],
    "explain": ["explain", "-", "-m", "MODEL"],
    "report": ["report", "-", "-m", "MODEL", "-o", "PAGE"],
}


@pytest.mark.slow
@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_a_later_table_may_lack_values_that_are_named(arguments, by_kind, fewlier, tmp_path):
    paths = {"MODEL": by_kind, "PAGE": tmp_path / "report.html"}
    arguments = [paths.get(text, text) for text in arguments]
    only_thefts = KINDS.where(KINDS == "theft", "").replace("Forgery ", "")
    done = fewlier(*arguments, "--label", "fraud", "--normal", "fine", stdin=csv(only_thefts))
    assert done.code == 0, done.err
    assert "note: standard input: No row of label column 'fraud' has 'fine' (normal)." in done.err
    several = ["--anomaly", "theft", "--anomaly", "forged", "--normal", "fine"]
    labels = KINDS.replace("Forgery ", "forgd")
    done = fewlier(*arguments, "--label", "fraud", *several, stdin=csv(labels))
    assert done.code == 0, done.err
    assert "No row of label column 'fraud' has 'forged' (anomaly)." in done.err
    assert "warning: standard input: Label 'forgd' (2 rows) is close to 'forged'" in done.err


def test_one_kind_alone_has_no_table_unless_training_did_not_know_it(by_kind, fewlier):
    arguments = ["evaluate", "-", "-m", by_kind, "--label", "fraud", "--normal", "fine"]
    for kind, is_shown in (("theft", False), ("Forgery", True)):
        rows = csv(KINDS.where(KINDS.isna() | (KINDS == "fine"), kind))
        assert ("by kind" in fewlier(*arguments, stdin=rows).out.decode()) == is_shown
        assert len(json.loads(fewlier(*arguments, "--json", stdin=rows).out)["by_kind"]) == 1


@pytest.mark.slow
def test_a_report_has_a_table_by_kind(by_kind, fewlier, tmp_path):
    page = tmp_path / "report.html"
    arguments = ["report", "-", "-m", by_kind, "--label", "fraud", "--normal", "fine", "-o", page]
    content = csv(KINDS.replace("Forgery ", "<b>forgery</b>"))
    assert fewlier(*arguments, stdin=content).code == 0
    html = page.read_text("utf-8")
    assert "<b>" not in html
    table = plain(
        re.sub(r"<[^>]+>", " ", html.split("Each kind of anomaly")[1].split("</table>")[0])
    )
    assert re.search(r"kind rows AUC recall trained", table)
    assert re.search(r"theft few rows 6 [01]\.\d{3} [\d.]+ % 6", table)
    assert re.search(r"&lt;b&gt;forgery&lt;/b&gt; few rows 2 [01]\.\d{3} .* never", table)
    assert html.count("<bdi>theft</bdi>") == 7  # six rows, and one line of the table


def test_codes_of_a_terminal_in_a_kind_are_shown_as_text(model, fewlier):
    labels = KINDS.replace("theft", "\x1b[31mtheft [red]")
    arguments = ["-", "-m", model, "--label", "fraud", "--normal", "fine"]
    for command in ("evaluate", "explain"):
        done = fewlier(command, *arguments, stdin=csv(labels))
        assert done.code == 0, done.err
        assert b"\\x1b[31mtheft [red]" in done.out
        assert b"\x1b[31m" not in done.out + done.err.encode()
