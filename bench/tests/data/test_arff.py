import numpy as np
import pytest

from fewlier.errors import UserError
from fewlier_bench.data.arff import read_arff

HEADER = """@RELATION 'Two, columns'

@ATTRIBUTE 'a b' real
@attribute "c" numeric
@ATTRIBUTE 'id' real
@ATTRIBUTE 'Outlier' {'yes','no'}

@DATA
"""


def read(rows, header=HEADER):
    return read_arff((header + rows).encode(), "two.arff")


def test_values_labels_and_names_are_read_without_the_id():
    table = read("0.1,2e-3,7.0,'yes'\n1.0,0.0,8.0,'no'\n")
    assert table.X.tolist() == [[0.1, 2e-3], [1.0, 0.0]]
    assert table.y.tolist() == [1, 0]
    assert table.feature_names == ("a b", "c")
    assert (table.X.dtype, table.y.dtype) == (np.float64, np.int8)


@pytest.mark.parametrize(
    "rows", ["% note\n0.1,1,7.0,no\n\n", "0.1, 1, 7.0, 'no'\r\n", "0.1,1,7.0,'no'"]
)
def test_comments_spaces_blank_lines_and_line_ends_do_not_matter(rows):
    assert read(rows).X.tolist() == [[0.1, 1.0]]


def test_values_are_those_of_the_text_bit_for_bit(make_arff):
    values = np.random.default_rng(3).random((50, 4))
    assert np.array_equal(read_arff(make_arff(50, 4, 5, seed=3).encode(), "a").X, values)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,1,7,'no'\n\n1,x,8,'no'\n", r"two.arff line 11 column 'c' must be a finite number"),
        ("1,?,7,'no'\n", r"line 9 column 'c' must be a finite number; got '\?'"),
        ("nan,1,7,'no'\n", r"line 9 column 'a b' must be a finite number; got 'nan'"),
        ("1,1,7,'maybe'\n", r"column 'Outlier' must be 'yes' or 'no'; got \"'maybe'\""),
        ("1,1,7,'no'\n1,1,'no'\n", r"line 10 must have 4 cells; got 3"),
        ("1,1,1,7,'no'\n", r"line 9 must have 4 cells; got 5"),
        ("1,1\n", r"line 9 must have 4 cells; got 2"),
        ("1_0,1,7,'no'\n", r"two.arff could not be read as rows of numbers"),
        ("", r"two.arff must have rows after @DATA; got none"),
    ],
)
def test_an_error_names_file_line_and_column(rows, message):
    with pytest.raises(UserError, match=message):
        read(rows)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("", r"must have a line @DATA; got none in 1 lines"),
        ("@ATTRIBUTE 'a' real\n@DATA\n", r"must have one column 'outlier'; got 0"),
        ("@ATTRIBUTE 'a'\n@DATA\n", r"line 1 must be '@ATTRIBUTE name type'"),
    ],
)
def test_an_error_says_what_is_wrong_with_the_header(header, message):
    with pytest.raises(UserError, match=message):
        read("1,'no'\n", header)
