"""A model file that is replaced, damaged, unreadable for a moment, or of other columns."""

import os
import shutil

import pytest
from factories import FEATURES, payments, small

from fewlier.service import model
from fewlier.service.arrow import write_arrow
from fewlier.service.limits import Refusal
from fewlier.service.metrics import Counts
from fewlier.service.model import ModelFile, Served

pytestmark = pytest.mark.slow


@pytest.fixture
def copy(path, tmp_path):
    return shutil.copy(path, tmp_path / "pay.fewlier")


@pytest.fixture
def file(copy, tmp_path, monkeypatch):
    monkeypatch.setattr(model, "RETRY_SECONDS", 0.0)
    file = ModelFile(copy, Counts(tmp_path / "no folder"))
    file.refresh()
    return file


def events(caplog):
    return [(record.levelname, record.message) for record in caplog.records]


def test_a_file_that_cannot_be_read_for_a_moment_is_taken_up_later(
    file, copy, other, monkeypatch, caplog
):
    first, read = file.served, Served.of
    other.save(copy)
    failures = [OSError(24, "Too many open files"), MemoryError()]

    def fail(_):
        raise failures.pop()

    monkeypatch.setattr(Served, "of", fail)
    file.refresh()
    file.refresh()
    assert file.served is first
    monkeypatch.setattr(Served, "of", read)
    file.refresh()  # nothing about the file has changed
    assert file.served.sha256 != first.sha256
    assert [level for level, _ in events(caplog)] == ["WARNING", "WARNING"]


def test_rights_that_are_given_later_are_seen_at_once(file, copy, other, monkeypatch):
    monkeypatch.setattr(model, "RETRY_SECONDS", 1e9)
    first, read = file.served, Served.of
    other.save(copy)
    monkeypatch.setattr(Served, "of", lambda _: 1 / 0)
    file.refresh()
    monkeypatch.setattr(Served, "of", read)
    file.refresh()
    assert file.served is first
    copy.chmod(0o644)  # changes neither when it was written, nor its size or inode
    file.refresh()
    assert file.served.sha256 != first.sha256


def test_a_damaged_file_is_refused_once_and_the_old_model_goes_on(file, copy, path, caplog):
    first = file.served
    copy.write_bytes(path.read_bytes()[:-100])
    file.refresh()
    file.refresh()
    copy.unlink()
    file.refresh()
    assert file.served is first
    assert events(caplog) == [("WARNING", "model file refused")] * 2
    assert caplog.records[0].model_sha256 == first.sha256


def test_who_has_no_model_yet_refuses_requests_until_there_is_one(copy, tmp_path):
    good = copy.read_bytes()
    copy.write_bytes(good[:-100])
    file = ModelFile(copy, Counts(tmp_path / "no folder"))
    file.refresh()
    with pytest.raises(Refusal, match="no model yet") as refused:
        assert file.served
    assert refused.value.status == 503
    copy.write_bytes(good)
    file.refresh()
    assert file.served.name == "pay"


def test_a_model_of_other_columns_is_an_error_in_the_log(file, copy, caplog):
    rows = payments(seed=5)
    changed = rows[FEATURES].rename(columns={"amount": "price"})
    small().fit(changed, rows["fraud"]).save(copy)
    file.refresh()
    (record,) = [one for one in caplog.records if one.levelname == "ERROR"]
    assert (record.added, record.gone) == (["price"], ["amount"])
    assert file.served.columns == {"price", "visits", "city"}


def test_a_name_that_is_not_utf8_can_be_told(path, tmp_path):
    odd = tmp_path / os.fsdecode(b"p\xff.fewlier")
    shutil.copy(path, odd)
    served = Served.of(odd)
    assert served.name.encode() == rb"p\udcff"
    assert write_arrow(served.facts, {"p_value": [0.5]})
