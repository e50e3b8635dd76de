import copy

import pytest

from fewlier.errors import CellError, UserError

ERROR = CellError("Column 'x' must hold numbers; got 'y'", 3, "Correct it.")


def test_a_cell_error_says_what_where_and_what_to_do():
    assert str(ERROR) == "Column 'x' must hold numbers; got 'y' (first at row 3). Correct it."
    assert isinstance(ERROR, UserError)


def test_a_cell_error_counts_rows_from_elsewhere():
    later = ERROR.after(100)
    assert str(later) == str(ERROR).replace("row 3", "row 103")
    assert later.after(-100).row == ERROR.row == 3


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_cell_error_survives_a_copy_with_all_of_its_parts(duplicate):
    other = duplicate(ERROR.after(1))  # by __reduce__, as between processes
    assert (str(other), other.row, other.remedy) == (str(ERROR.after(1)), 4, "Correct it.")
