"""One pass over a stream: which rows are kept, and that levels are counted over all of them."""

import dataclasses
import datetime
import itertools
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fewlier import FewlierWarning, UserError
from fewlier.files import reading, reservoir, sampling
from fewlier.files.reading import Batch
from fewlier.files.sampling import Sampler
from fewlier.files.streams import read_stream
from fewlier.fitting.training_rows import read_training_rows
from fewlier.table.cells import missing
from fewlier.table.columns import Column, Kind
from fewlier.table.label_column import LabelColumn
from fewlier.table.labels import ANOMALY, NORMAL, UNLABELLED, RowCounts

FRAUD = LabelColumn("fraud")
NO_CHOICE = {"columns": None}
reuse = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def small_limits(monkeypatch):
    """Keep few rows, and look at few at a time."""
    monkeypatch.setattr(sampling, "MAX_NORMALS", 60)
    monkeypatch.setattr(sampling, "MAX_ANOMALIES", 12)
    monkeypatch.setattr(reservoir, "MIN_KEPT_ROWS", 16)
    monkeypatch.setattr(reading, "_BATCH_ROWS", 32)


def labelled(n, n_anomalies, n_normals, seed=0):
    """Return n numbered rows; the rest has no label."""
    fraud = np.full(n, np.nan)
    fraud[:n_anomalies], fraud[n_anomalies : n_anomalies + n_normals] = 1, 0
    fraud = np.random.default_rng(seed).permutation(fraud)
    return pa.table({"row": np.arange(n), "fraud": pa.array(fraud, from_pandas=True)})


def draw(rows, label=FRAUD, seed=0, size=None):
    batches = rows.to_batches(max_chunksize=size) if isinstance(rows, pa.Table) else rows
    return Sampler(label, seed, ()).read(read_stream(iter(batches)))


def category(name):
    return Column(name, Kind.CATEGORY, Kind.CATEGORY)


def counts(sample):
    codes = sample.labels.codes
    return [int((codes == code).sum()) for code in (ANOMALY, NORMAL, UNLABELLED)]


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        ((500, 9, 40), [9, 40, 20]),  # every anomaly, every normal, and others up to the limit
        ((500, 9, 80), [9, 60, 0]),
        ((500, 30, 0), [12, 0, 60]),
        ((50, 9, 20), [9, 20, 21]),
    ],
)
def test_labelled_rows_come_first(rows, kept):
    table = labelled(*rows)
    sample = draw(table)
    assert counts(sample) == kept
    numbers = sample.rows["row"].to_pylist()
    assert numbers == sorted(set(numbers))
    assert sample.places.positions.tolist() == numbers
    labels = table["fraud"].to_pandas().fillna(-1)[numbers]
    assert sample.labels.codes.tolist() == labels.tolist()
    n, n_anomalies, n_normals = rows
    assert sample.counts == RowCounts(n_normals, n_anomalies, n - n_anomalies - n_normals)
    assert bool(sample.note) == (sum(kept) < n)


@pytest.mark.slow
@pytest.mark.usefixtures("small_limits")
def test_every_row_is_as_likely_to_be_kept():
    n, n_draws = 300, 100
    table, times = labelled(n, 0, 0), np.zeros(300)
    for seed in range(n_draws):
        times[draw(table, None, seed).rows["row"].to_numpy()] += 1
    share = 60 / n
    # A sum of squared deviations in units of their variance: n - 1 in the mean, ±5 sigma allowed.
    surprise = ((times - n_draws * share) ** 2).sum() / (n_draws * share * (1 - share))
    assert abs(surprise - (n - 1)) < 5 * np.sqrt(2 * n)


@pytest.mark.slow
@reuse
@given(st.lists(st.integers(0, 90), max_size=8), st.integers(0, 5))
@pytest.mark.usefixtures("small_limits")
def test_the_sample_depends_on_the_rows_and_the_seed_and_not_on_batches(sizes, seed):
    table = labelled(400, 9, 20).append_column("city", [["Bern", "Oslo", "Rome", "Bern"] * 100])
    cuts = np.minimum(np.cumsum([0, *sizes, 400]), 400).tolist()
    parts = [table.slice(a, b - a) for a, b in itertools.pairwise(cuts)]
    expected, found = draw(table, seed=seed), draw(parts, seed=seed)
    assert found.rows.equals(expected.rows)
    assert found.labels.codes.tolist() == expected.labels.codes.tolist()
    assert found.levels.of(category("city")) == {"Bern": 200, "Oslo": 100, "Rome": 100}


COLUMNS = {
    "few": st.integers(0, 3).map(float),
    "counts": st.integers(0, 60).map(float),
    "mostly one": st.sampled_from([5.0] * 40 + [6.0]),
    "tail": st.integers(0, 1000).map(lambda n: np.exp(n / 80) / 7),
    "real": st.floats(-1e6, 1e6),
    "two": st.sampled_from([-1.0, 4.0]),
    "city": st.sampled_from(["Bern", "Oslo", "Rome", "Rio", "Nice", "NA", " "]),
    "written": st.integers(-500, 500).map(lambda n: f"{n / 4:.2f} €"),
}


@pytest.mark.slow
@reuse
@given(st.data())
@pytest.mark.usefixtures("small_limits")
def test_kinds_are_those_of_the_kept_rows_and_levels_of_text_those_of_all(data):
    """Compare with fits to the kept rows, and to all rows, in memory."""
    seed = data.draw(st.integers(0, 10**6))
    rng, frame = np.random.default_rng(seed), {}
    for name, values in COLUMNS.items():
        pool = data.draw(st.lists(values, min_size=25, max_size=25))
        cells = np.array(pool, dtype=object)[rng.integers(0, 25, 300)]
        frame[name] = np.where(rng.random(300) < 0.1, None, cells)
    frame["fraud"] = np.where(rng.random(300) < 0.02, 1.0, np.nan)
    table = pa.Table.from_pandas(pd.DataFrame(frame), preserve_index=False)
    label = pa.chunked_array(table["fraud"])
    whole = read_training_rows(table.drop_columns("fraud"), label.to_pandas(), NO_CHOICE, 0)
    drawn = read_training_rows(iter([table]), "fraud", NO_CHOICE, 0)
    assert not drawn.is_complete
    kept = read_training_rows(drawn.sample.rows, drawn.sample.labels, NO_CHOICE, 0)
    all_levels = {column.name: column.levels for column in whole.schema.columns}
    for found, of_kept in zip(drawn.schema.columns, kept.schema.columns, strict=True):
        is_text = of_kept.kind is Kind.CATEGORY
        levels = all_levels[of_kept.name] if is_text else of_kept.levels
        assert found == dataclasses.replace(of_kept, levels=levels)
    cities = pd.Series(whole.table.cells["city"]).value_counts().to_dict()
    assert drawn.table.level_counts == {"city": cities}


SPELLED = {
    "text": pa.array(["b", "a", None, " b"] * 300),
    "large": pa.array(["b", "", "?", "c"] * 300, pa.large_string()),
    "truth": pa.array([True, False, None] * 400),
    "words": pa.array(["x", "y", "z"] * 400).dictionary_encode(),
    "codes": pa.array([7, 8, None] * 400).dictionary_encode(),
    "fractions": pa.array([7.0, 8.5, None] * 400).dictionary_encode(),
}


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("name", SPELLED)
def test_levels_of_any_type_are_spelled_as_in_memory(name):
    rows = pa.table({name: SPELLED[name]})
    said = {"columns": {name: "category"}, "missing": {name: ["?"]}}
    whole, drawn = (
        read_training_rows(rows, None, said, 0),
        read_training_rows(iter([rows]), None, said, 0),
    )
    assert drawn.schema == whole.schema
    assert drawn.table.level_counts[name].total() == (~missing(whole.table.cells[name])).sum()


@pytest.mark.usefixtures("small_limits")
def test_what_gives_the_label_away_is_found_in_the_kept_rows():
    fraud = np.arange(2000) % 250 == 0
    rows = pa.table({"n": np.arange(2000) % 7 / 2, "after": np.where(fraud, 5.0, np.nan)})
    rows = rows.append_column("fraud", pa.array(fraud))
    with pytest.warns(FewlierWarning, match="'after' .*filled in 8 of 8 anomalies"):
        read_training_rows(iter([rows]), "fraud", NO_CHOICE, 0)


@pytest.mark.usefixtures("small_limits")
def test_of_too_many_texts_the_kept_rows_have_the_levels(monkeypatch):
    monkeypatch.setattr("fewlier.files.sampling.MAX_LEVELS", 40)
    many = [f"word {i % 20 if i < 1000 else i % 50}" for i in range(1050)]
    table = pa.table({"few": [f"word {i % 40}" for i in range(1050)], "many": many})
    kinds = {"columns": {"few": "category", "many": "category"}}
    drawn = read_training_rows(iter([table]), None, kinds, 0)
    few, many = drawn.schema.columns
    assert len(few.levels) == 40
    assert set(many.levels) == set(drawn.sample.rows["many"].to_pylist())
    assert set(drawn.table.level_counts) == {"few"}


@pytest.mark.usefixtures("small_limits")
def test_an_error_names_the_row_of_the_stream():
    text = ["1.5"] * 200 + ["much"] * 100
    with pytest.raises(UserError, match=r"got \d+ texts of \d+ .* row (2\d\d)\)"):
        read_training_rows(
            iter([pa.table({"a": text, "b": text})]), None, {"columns": {"a": "1.5"}}, 0
        )


def test_types_of_one_family_may_differ():
    parts = [
        pa.table({"n": pa.array([1, 2], pa.int8()), "t": ["a", "b"]}),
        pa.table({"t": pa.array(["c"], pa.large_string()), "n": pa.array([2.5])}),
        pa.table({"n": pa.nulls(1), "t": pa.array(["a"]).dictionary_encode()}),
    ]
    sample = draw(parts, None)
    assert sample.rows.to_pydict() == {"n": [1, 2, 2.5, None], "t": ["a", "b", "c", "a"]}


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"n": ["x"], "t": ["c"]}, "column 'n' must have the type of .*, int64; got string"),
        ({"n": [1]}, "the columns must be .*; it lacks 't'"),
        ({"n": [1], "t": ["c"], "u": [1]}, "the columns must be .*; it adds 'u'"),
    ],
)
def test_other_columns_are_refused_with_both_types(second, message):
    with pytest.raises(UserError, match=f"the stream: {message}"):
        draw([pa.table({"n": [1, 2], "t": ["a", "b"]}), pa.table(second)], None)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "must have rows; got none"),
        ([1, 2], "record batches or tables of Arrow; got int"),
        ([pa.table({"fraud": [1.0]})], "must have a column to learn from"),
        ([pa.table({"a": [1], "froud": [0]})], "Did you mean 'froud'"),
    ],
)
def test_what_is_no_stream_of_rows_is_refused(rows, message):
    with pytest.raises(UserError, match=message):
        draw(rows)


def test_rows_that_are_not_in_batches_are_refused():
    with pytest.raises(UserError, match=r"must be a DataFrame or come in batches.*got int"):
        read_training_rows(5, "fraud", NO_CHOICE, 0)


def test_labels_of_a_dictionary_may_have_gaps_and_values_of_no_row():
    """Pandas writes a categorical label so."""
    cells = pa.DictionaryArray.from_arrays([0, None, 1, 0], ["ok", "bad", "never"])
    rows = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "class": cells})
    sample = draw(rows, LabelColumn("class", normal=("ok",)))
    assert sample.labels.codes.tolist() == [NORMAL, UNLABELLED, ANOMALY, NORMAL]
    assert sample.labels.kinds == ("bad",)
    assert sample.counts.kinds == {"bad": 1}


def files(*tables):
    """Return the batches of two files, a and b, of which the second may be in two parts."""
    starts = itertools.accumulate((t.num_rows for t in tables[1:]), initial=0)
    later = [
        Batch("b.csv", table, start, None) for table, start in zip(tables[1:], starts, strict=False)
    ]
    return [Batch("a.csv", tables[0], 0, None), *later]


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("at", [0, 41, 170])
@pytest.mark.parametrize("is_anomaly", [False, True])
def test_an_infinite_number_is_found_in_its_row_whether_that_is_kept_or_not(at, is_anomaly):
    numbers, fraud = np.random.default_rng(0).normal(size=200), np.tile([1.0, 0.0], 100)
    numbers[at], fraud[at] = np.inf, is_anomaly
    bad = pa.table({"n": numbers, "skipped": np.full(200, np.inf), "fraud": fraud})
    good = pa.table({name: np.tile([1.0, 0.0], 200) for name in bad.column_names})
    rows = files(good, bad.slice(0, 90), bad.slice(90))
    with pytest.raises(UserError, match=rf"b\.csv: Column 'n' .*1 infinite \(first at row {at}\)"):
        read_training_rows(iter(rows), "fraud", {"columns": {"skipped": "ignore"}}, 0)


@pytest.mark.usefixtures("small_limits")
def test_an_infinite_number_in_text_is_found_in_its_row_if_that_is_kept():
    good = pa.table({"n": [f"{i / 8}" for i in range(300)]})
    bad = pa.table({"n": [*(f"{i / 8}" for i in range(300)), *["1e999"] * 100]})
    with pytest.raises(UserError, match=r"b\.csv: Column 'n' .*infinite \(first at row 3\d\d\)"):
        read_training_rows(iter(files(good, bad)), None, NO_CHOICE, 3)


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("column", ["day", "n"])
def test_unread_cells_of_kept_rows_are_told_with_a_file(column):
    days = [f"{d:02}/{m:02}/2024" for m in range(1, 13) for d in range(1, 29)] * 2
    more = [*days[:-20], *["soon"] * 20]
    table = pa.table({"day": days, "n": [f"{i / 4}" for i in range(672)]})
    later = pa.table({"day": more, "n": [*[f"{i / 4}" for i in range(632)], *["?"] * 40]})
    kinds = {"columns": {"n": "real:1200.5", "day": "%d/%m/%Y"}}
    with pytest.warns(FewlierWarning) as told:
        read_training_rows(iter(files(table, later)), None, kinds, 0)
    (said,) = [str(w.message) for w in told if "in another form" in str(w.message)]
    assert said.startswith("of the kept rows")
    assert re.search(rf"\d in {column} \(first '(soon|\?)' in row 6\d\d of b\.csv\)", said)


def test_numbers_and_moments_of_different_types_are_joined():
    moments = [pa.array([7], pa.timestamp("s")), pa.array([1_500_000_001], pa.timestamp("ns"))]
    day = pa.array([datetime.date(2024, 1, 1)])
    parts = [
        pa.table({"id": [2**53 + 1], "at": moments[0], "day": day.dictionary_encode()}),
        pa.table({"id": [0.5], "at": moments[1], "day": day}),
    ]
    rows = draw(parts, None).rows
    assert rows["id"].to_pylist() == [2.0**53, 0.5]
    assert rows["at"].cast(pa.int64()).to_pylist() == [7_000_000, 1_500_000]
    assert rows["day"].to_pylist() == day.to_pylist() * 2


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("is_first", [True, False])
def test_texts_in_dictionaries_are_counted_with_plain_ones(is_first):
    parts = [pa.table({"n": pa.array(["a", "b"] * 64).dictionary_encode()})]
    parts.append(pa.table({"n": pa.array(["b"] * 64, pa.large_string())}))
    sample = draw(parts if is_first else parts[::-1], None)
    assert sample.levels.of(category("n")) == {"a": 64, "b": 128}


@pytest.mark.usefixtures("small_limits")
def test_a_wide_stream_holds_little_more_than_it_keeps(monkeypatch):
    """Of columns, not of rows, depends how many more; and rows are looked at in smaller blocks."""
    monkeypatch.setattr(reading, "_BATCH_CELLS", 300)
    most, offer = [], reservoir.Reservoir.offer

    def count(self, keys, rows):
        offer(self, keys, rows)
        most.append((len(self), len(keys)))

    monkeypatch.setattr(reservoir.Reservoir, "offer", count)
    wide = pa.table({f"c{i}": np.arange(2000.0) for i in range(50)})
    sample = draw(wide, None)
    assert len(sample.rows) == 60
    assert max(size for _, size in most) == 6
    assert max(held for held, _ in most) <= 60 + 60 // 8


@pytest.mark.usefixtures("small_limits")
def test_rows_of_a_stream_are_counted_before_any_is_dropped(monkeypatch):
    monkeypatch.setattr(reading, "_BATCH_ROWS", 500)
    monkeypatch.setattr(reading, "_BATCH_CELLS", 500)
    levels = draw(pa.table({"n": ["a", "b"] * 617}), None).levels
    assert levels.of(category("n")) == {"a": 617, "b": 617}
