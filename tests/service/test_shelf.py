"""Models as their files are now, or were when they were last whole."""

import shutil

import pytest

from fewlier.errors import UserError
from fewlier.service.limits import Refusal
from fewlier.service.shelf import Shelf


@pytest.fixture
def path(detector, tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    detector.save(folder / "pay.fewlier")
    return folder / "pay.fewlier"


@pytest.fixture
def counts(tmp_path):
    (tmp_path / "counts").mkdir()
    return tmp_path / "counts"


def opened(path, counts):
    """Return a shelf as a process that has just started has it."""
    shelf = Shelf(path, counts)
    shelf.open()
    return shelf


def damage(path):
    path.write_bytes(path.read_bytes()[:-100])  # in place: a link to the file is damaged too


@pytest.mark.parametrize("change", [damage, lambda path: path.unlink()], ids=["damaged", "gone"])
def test_who_starts_after_a_file_was_damaged_goes_on_with_the_last_good_one(path, counts, change):
    first = opened(path, counts).get()
    change(path)
    later = opened(path, counts)
    assert (later.get().name, later.get().sha256) == ("pay", first.sha256)
    later.refresh()
    assert later.get().sha256 == first.sha256


def test_who_has_started_with_a_copy_takes_up_the_file_when_it_is_whole_again(path, counts, other):
    first = opened(path, counts).get()
    damage(path)
    later = opened(path, counts)
    other.save(path)
    later.refresh()
    assert later.get().sha256 != first.sha256
    damage(path)
    assert opened(path, counts).get().sha256 == later.get().sha256


def test_one_bad_file_in_a_folder_does_not_keep_others_from_being_served(path, counts):
    folder = path.parent
    first = opened(folder, counts).get("pay")
    damage(path)
    (folder / "bad.fewlier").write_bytes(b"garbage")
    later = opened(folder, counts)
    assert [(one.name, one.sha256) for one in later] == [("pay", first.sha256)]
    with pytest.raises(Refusal, match="No model of that name"):
        later.get("bad")
    path.unlink()
    later.refresh()
    assert [*later] == []
    assert [*opened(folder, counts)] == []


def test_a_folder_with_a_bad_file_is_refused_at_first(path, counts):
    shutil.copy(path, path.with_name("second.fewlier"))
    damage(path.with_name("second.fewlier"))
    with pytest.raises(UserError, match="second"):
        Shelf(path.parent, counts).open()


def test_a_shelf_without_a_model_says_so(path, counts):
    with pytest.raises(Refusal, match="No model") as refused:
        Shelf(path, counts).get()
    assert refused.value.status == 404
