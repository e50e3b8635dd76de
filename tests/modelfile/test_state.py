"""What a model file holds of an object: flattened, and read back with checks."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewlier import FormatError
from fewlier.modelfile.state import State


def stored(state):
    """Return a state as a file gives it back."""
    record, arrays = state.flat()
    return State(json.loads(json.dumps(record)), arrays)


NESTED = State(
    {
        "share": 0.5,
        "side": State({"n": 3}, {"rows": np.arange(6.0).reshape(2, 3)}),
        "members": [State({"lam": 1.0}, {"w": np.array([True, False])}) for _ in range(2)],
        "nothing": None,
    },
    {"centre": np.zeros(2, np.float32)},
)


def read_all(state):
    side = state.part("side")
    members = [(m.number("lam"), m.flags("w", (2,)).tolist()) for m in state.parts("members")]
    return (
        state.positive("share", below=1.0),
        (side.count("n"), side.array("rows", "f8", (None, 3)).sum()),
        members,
        state.optional("nothing"),
        state.array("centre", "f4", (2,)).tolist(),
    )


def test_a_tree_of_states_is_flattened_and_read_back():
    record, arrays = NESTED.flat()
    assert record == {
        "share": 0.5,
        "side": {"n": 3},
        "members": [{"lam": 1.0}, {"lam": 1.0}],
        "nothing": None,
    }
    assert sorted(arrays) == ["centre", "members.0.w", "members.1.w", "side.rows"]
    state = stored(NESTED)
    expected = (0.5, (3, 15.0), [(1.0, [True, False])] * 2, None, [0.0, 0.0])
    assert read_all(state) == expected
    state.check_all_read()


@pytest.mark.parametrize("place", ["", "side.", "members.1."])
def test_a_field_that_nobody_asks_for_is_refused(place):
    record, arrays = NESTED.flat()
    {"": record, "side.": record["side"], "members.1.": record["members"][1]}[place]["more"] = 1
    state = State(record, arrays)
    read_all(state)
    with pytest.raises(FormatError, match=rf"it holds \['{place}more'\]"):
        state.check_all_read()


@pytest.mark.parametrize(
    "name", ["more", "side.more", "members.1.w.more", "members.7.w", "nothing.w"]
)
def test_an_array_that_nobody_asks_for_is_refused(name):
    record, arrays = NESTED.flat()
    state = State(record, arrays | {name: np.zeros(1)})
    read_all(state)
    with pytest.raises(FormatError, match=rf"it holds \['{name}'\]"):
        state.check_all_read()


WRONG = [
    ("number", {}, ["1", 1, True, None, math.nan, math.inf, [1.0]]),
    ("number", {"least": 0.0, "most": 1.0}, [-0.1, 1.1]),
    ("positive", {"below": 1.0}, [0.0, 1.0, -1.0, 1, "1"]),
    ("count", {"least": 1, "most": 5}, [0, 6, True, 2.0, "2", None]),
    ("text", {}, [1, None, ["a"]]),
    ("text", {"choices": ["a", "b"]}, ["c", ["a"], None]),
    ("flag", {}, [0, 1, "true", None]),
    ("items", {}, [{}, "ab", None]),
    ("numbers", {}, [[1.0, 1], ["1"], 1.0]),
    ("counts", {"most": 3}, [[4], [-1], [True], [1.0], 1]),
    ("texts", {}, [["a", 1], "a"]),
    ("part", {}, [[], None, "a"]),
]


@pytest.mark.parametrize(
    ("read", "bounds", "value"),
    [(read, bounds, value) for read, bounds, values in WRONG for value in values],
    ids=str,
)
def test_a_wrong_value_is_refused_by_its_name(read, bounds, value):
    with pytest.raises(FormatError, match=r"'part\.field' must be "):
        getattr(State({"field": value}, name="part"), read)("field", **bounds)


def test_an_absent_field_is_refused_by_its_name():
    with pytest.raises(FormatError, match=r"'part\.field' is missing"):
        State({}, name="part").number("field")
    with pytest.raises(FormatError, match=r"'part\.rows' is missing"):
        State({}, name="part").array("rows", "f4", ())


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 3), "f8"), r"is float64 \[2, 3\], not float32 \[2, 'any'\]"),
        (np.zeros((3, 3), "f4"), r"is float32 \[3, 3\], not"),
        (np.zeros(2, "f4"), r"is float32 \[2\], not"),
        (np.full((2, 1), np.nan, "f4"), "NaN or infinity"),
        (np.full((2, 1), np.inf, "f4"), "NaN or infinity"),
    ],
)
def test_an_array_of_another_type_shape_or_content_is_refused(array, message):
    with pytest.raises(FormatError, match=message):
        State({}, {"a": array}).array("a", np.float32, (2, None))


def test_truth_values_are_0_or_1():
    with pytest.raises(FormatError, match="must hold 0 or 1"):
        State({}, {"a": np.array([0, 2], np.uint8)}).flags("a", (2,))


def test_arrays_are_copied():
    content = np.zeros(2)
    State({}, {"a": content}).array("a", "f8", (2,))[0] = 1
    assert content[0] == 0


@given(st.text() | st.lists(st.text()) | st.dictionaries(st.text(), st.text()))
def test_a_message_quotes_little_of_a_damaged_file(value):
    with pytest.raises(FormatError) as caught:
        State({"field": value}).count("field")
    assert len(str(caught.value)) < 500
