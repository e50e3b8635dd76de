"""What the values of a label column mean."""

import warnings
from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewlier.errors import LabelWarning, UserError
from fewlier.table.cells import MISSING
from fewlier.table.label_column import MAX_KINDS, LabelColumn, LabelReader, listed_counts
from fewlier.table.labels import ANOMALY, NORMAL, UNLABELLED

NAN = float("nan")
PLAIN = LabelColumn("y")
LOG = ["normal.", "smurf.", "", "neptune.", "smurf.", None, "normal."]


def codes(cells, anomaly=(), normal=()):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelWarning)
        return LabelColumn("y", tuple(anomaly), tuple(normal)).read(cells).codes.tolist()


@pytest.mark.parametrize(
    "cells",
    [
        ["1", "0", ""],
        [" 1 ", "0", "NA"],
        ["1.0", "0.0", "nan"],
        ["1,0", "0,00", None],
        ["true", "FALSE", "null"],
        ["True", "False", "None"],
        [True, False, None],
        [1, 0, None],
        [1.0, 0.0, NAN],
        [Decimal("1.00"), Decimal(0), None],
        pd.Series([1, 0, None]),
        pd.Series([1, 0, None], dtype="Int64"),
        np.array([1, 0, NAN], dtype=np.float32),
        ["1", "0", "-1"],
    ],
)
def test_cells_say_one_zero_or_nothing(cells):
    assert PLAIN.read(cells).codes.tolist() == [ANOMALY, NORMAL, UNLABELLED]


@pytest.mark.parametrize("one", ["1", "1.0", "true", True, 1, 1.0])
@pytest.mark.parametrize("gap", ["", None, "NA", NAN])
def test_ones_and_gaps_are_anomalies_and_unlabelled_rows(one, gap):
    labels = PLAIN.read([one, gap, gap, one, gap])
    expected = [ANOMALY, UNLABELLED, UNLABELLED, ANOMALY, UNLABELLED]
    assert (labels.codes.tolist(), labels.notes, labels.kinds) == (expected, (), ())


@pytest.mark.parametrize(
    "column", [PLAIN, LabelColumn("y", ("bad",)), LabelColumn("y", (), ("ok",))]
)
def test_an_empty_column_leaves_all_rows_unlabelled_and_says_so(column):
    labels = column.read(["", None, " ", NAN])
    assert labels.codes.tolist() == [UNLABELLED] * 4
    assert labels.notes == ("Label column 'y' is empty: all 4 rows are unlabelled.",)


@pytest.mark.parametrize("spelling", sorted(MISSING))
def test_a_missing_label_has_the_spellings_of_a_missing_cell(spelling):
    assert codes([spelling, "1"]) == [UNLABELLED, ANOMALY]
    assert codes([spelling, "bad"], ["bad"]) == [UNLABELLED, ANOMALY]
    assert codes([spelling, "ok", "bad"], [], ["ok"]) == [UNLABELLED, NORMAL, ANOMALY]


def test_minus_one_and_one_alone_are_refused_in_a_column_too():
    with pytest.raises(UserError, match="got only -1 and 1"):
        PLAIN.read(["-1", "1"])


@pytest.mark.parametrize(
    ("cells", "anomaly"),
    [
        (["bad", "fine", "ok", ""], "bad"),
        ([" 2", "1", "0", None], "2"),
        (["2.0", "1.0", "0.0", ""], "2"),
        (["2", "1", "0", ""], "2.0"),
        ([2, 1, 0, None], "2"),
        ([2.0, 1.0, 0.0, NAN], "2"),
        ([" BAD", "fine", "good", ""], "Bad "),
        (["STRASSE", "fine", "good", ""], "straße"),
        ([True, False, "no", None], "TRUE"),
    ],
)
def test_anomaly_alone_makes_other_values_normal(cells, anomaly):
    assert codes(cells, [anomaly]) == [ANOMALY, NORMAL, NORMAL, UNLABELLED]


def test_every_value_that_is_named_counts():
    found = codes(["neptune.", "guess_passwd.", "smurf.", "normal."], ["neptune.", "GUESS_passwd."])
    assert found == [ANOMALY, ANOMALY, NORMAL, NORMAL]


def test_normal_alone_makes_other_values_anomalies_and_each_a_kind():
    labels = LabelColumn("class", normal=("Normal.",)).read(LOG)
    one, zero, gap = ANOMALY, NORMAL, UNLABELLED
    assert labels.codes.tolist() == [zero, one, gap, one, one, gap, zero]
    assert labels.kinds == ("smurf.", "neptune.")
    assert labels.kind_of.tolist() == [-1, 0, -1, 1, 0, -1, -1]
    assert labels.kind_counts == {"smurf.": 2, "neptune.": 1}
    assert [labels.kind(row) for row in range(3)] == [None, "smurf.", None]
    assert labels.record(1) == {"label": "anomaly", "kind": "smurf."}
    assert labels.record(2) == {"label": None, "kind": None}
    (note,) = labels.notes
    assert "count as anomalies, each as a kind" in note
    assert note.endswith("'class': 'smurf.' 2; 'neptune.' 1.")


def test_with_both_options_the_rest_is_unlabelled_counted_and_named():
    labels = LabelColumn("class", ("smurf.",), ("normal.",)).read(LOG)
    one, zero, gap = ANOMALY, NORMAL, UNLABELLED
    assert labels.codes.tolist() == [zero, one, gap, gap, one, gap, zero]
    assert labels.kind_counts == {"smurf.": 2}
    assert labels.notes == (
        "Values not named leave their rows unlabelled, in label column 'class': 'neptune.' 1.",
    )


def test_values_that_count_as_normal_are_listed_with_their_counts():
    labels = LabelColumn("class", ("smurf.",)).read(LOG)
    assert labels.notes == (
        "Values not named as anomalies count as normal, in label column 'class': 'normal.' 2; "
        "'neptune.' 1.",
    )
    assert LabelColumn("class", ("bad",)).read(["bad", "", "bad"]).notes == ()


def test_many_values_are_cut_short_and_summed():
    counts = {f"value {i}": 100 - i for i in range(14)} | {"x" * 99: 1}
    listed = listed_counts(counts)
    assert listed.startswith("'value 0' 100; 'value 1' 99; ")
    assert listed.endswith("; and 5 more values with 355 rows")
    assert listed_counts({"x" * 99: 1200}) == f"'{'x' * 59}…' 1,200"


SLIPS = [("attak", "attack"), ("atack ", "Attack"), ("normal", "normal."), ("froud", "fraud")]
APART = [("class1", "class2"), ("10", "100"), ("smurf.", "neptune."), ("ok", "bad")]


@pytest.mark.parametrize(("value", "name"), SLIPS)
def test_a_near_miss_is_a_warning_with_value_and_count(value, name):
    cells = [name, value, value, "something else"]
    with pytest.warns(LabelWarning, match="counts as normal") as told:
        labels = LabelColumn("y", (name,)).read(cells)
    assert labels.codes.tolist() == [ANOMALY, NORMAL, NORMAL, NORMAL]
    message = str(told[0].message)
    assert message.startswith(f"Label {value.strip()!r} (2 rows) is close to {name!r}")
    assert message.endswith("or name it as anomaly too.")
    assert labels.doubts == (message,)


@pytest.mark.parametrize(("value", "name"), APART)
def test_values_that_differ_on_purpose_are_no_near_miss(value, name):
    assert LabelColumn("y", (name,)).read([name, value]).doubts == ()


def test_a_value_that_is_named_too_is_no_near_miss():
    assert LabelColumn("y", ("attack", "attak")).read(["attack", "attak", "no"]).doubts == ()
    assert LabelColumn("y", ("Attack",)).read(["attack ", "ATTACK", "no"]).doubts == ()


@pytest.mark.parametrize(
    ("anomaly", "normal", "message"),
    [
        (
            ["smurf"],
            [],
            r"does not hold 'smurf', named as anomaly\. Did you mean 'smurf\.' \(2 rows\)",
        ),
        (["smurf.", "land."], [], r"hold 'land\.', .*'normal\.' 2; 'neptune\.' 1\.$"),
        ([], ["benign"], r"'benign', named as normal.*others: 'normal\.' 2; 'smurf\.'"),
        (["smurf.,neptune."], [], r"Name each of several values by itself"),
    ],
)
def test_a_named_value_that_no_row_has_is_refused_with_the_choices(anomaly, normal, message):
    column = LabelColumn("y", tuple(anomaly), tuple(normal))
    with pytest.raises(UserError, match=message):
        column.read(LOG)


def test_a_part_of_a_table_may_lack_values_that_are_named():
    reader = LabelReader(LabelColumn("y", ("smurf.", "land.")))
    assert (reader.read(reader.add(LOG), is_complete=False).codes == ANOMALY).sum() == 2


@pytest.mark.parametrize("value", ["", " ", "NA", "null"])
def test_a_missing_label_cannot_be_named(value):
    with pytest.raises(UserError, match="must be a value"):
        LabelColumn("y", (value,))


def test_a_value_cannot_mean_both():
    with pytest.raises(UserError, match="'bad'"):
        LabelColumn("y", ("Bad", "worse"), ("ok", "bad "))


@pytest.mark.parametrize(
    ("cell", "shown"), [("yes", "yes"), ("Bad ", "Bad"), (2, "2"), (0.5, "0.5")]
)
def test_another_value_is_refused_with_its_row_and_the_options_to_use(cell, shown):
    message = f"'y' must hold 1 and 0, or true and false, .*; got '{shown}' .*anomaly=.*normal="
    with pytest.raises(UserError, match=message) as caught:
        PLAIN.read(["1", None, "0", cell, "no"])
    assert caught.value.row == 3


def test_a_column_of_countless_values_holds_no_labels():
    ids = [f"id{i}" for i in range(MAX_KINDS + 2)]
    with pytest.raises(UserError, match=r"1,000 .*1,001"):
        LabelColumn("y", normal=("id0",)).read(ids)
    assert len(LabelColumn("y", normal=("id0",)).read(ids[:-1]).kinds) == MAX_KINDS


def test_values_are_counted_as_they_are_spelled_most_often():
    cells = ["Bad", "bad ", "bad", "ok", "", None, "1.0", 1]
    reader = LabelReader(PLAIN)
    with pytest.raises(UserError, match="got 'Bad'"):
        reader.add(cells)
    assert reader.counts == {"bad": 3, "1": 2, "ok": 1}  # all cells, also after the wrong one


VALUES = st.sampled_from(["", "NA", "ok", "OK ", "bad", "Bad", "worse", "odd thing", "7", "7.0"])


@given(st.lists(st.lists(VALUES), min_size=1), st.booleans(), st.booleans())
def test_labels_follow_the_rule_and_do_not_depend_on_batches(parts, by_anomaly, by_normal):
    """Compare with the rule written down plainly."""
    anomaly, normal = ("BAD",) * by_anomaly, ("ok",) * by_normal
    if not (anomaly or normal):
        return
    reader = LabelReader(LabelColumn("y", anomaly, normal))
    rows = np.concatenate([reader.add(part) for part in parts])
    labels = reader.read(rows, is_complete=False)
    assert reader.codes[rows].tolist() == labels.codes.tolist()
    texts = [cell.strip().lower().replace("7.0", "7") for part in parts for cell in part]
    rest = UNLABELLED if anomaly and normal else NORMAL if anomaly else ANOMALY
    meaning = {"": UNLABELLED, "na": UNLABELLED}
    meaning |= {"bad": ANOMALY} if anomaly else {}
    meaning |= {"ok": NORMAL} if normal else {}
    expected = [meaning.get(text, rest) for text in texts]
    assert labels.codes.tolist() == expected
    kinds = [(labels.kind(row) or "").lower() for row in range(len(texts))]
    assert kinds == [t if e == ANOMALY else "" for t, e in zip(texts, expected, strict=True)]
    counts = Counter(kind for kind in kinds if kind)
    assert {kind.lower(): n for kind, n in labels.kind_counts.items()} == counts
    assert list(labels.kind_counts.values()) == sorted(counts.values(), reverse=True)
