import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fewlier import UserError
from fewlier.files.atomic import INCOMPLETE, SUCCESS, replacing, writing_folder
from fewlier.files.folder import TableFolder


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_file_takes_its_place_when_the_block_ends(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with replacing(tmp_path / "a") as file:
        file.write(b"new" * 100_000)
        file.flush()
        assert (tmp_path / "a").read_bytes() == b"old"
    assert contents(tmp_path) == {"a": b"new" * 100_000}


@pytest.mark.parametrize("before", [{}, {"a": b"old"}], ids=["absent", "there"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_nothing_has_changed_when_the_block_fails(error, before, tmp_path):
    for name, content in before.items():
        (tmp_path / name).write_bytes(content)

    def write_and_fail():
        with replacing(tmp_path / "a") as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        write_and_fail()
    assert contents(tmp_path) == before


def test_who_reads_meanwhile_sees_one_content_or_the_other(tmp_path):
    path, sizes, is_done = tmp_path / "a", set(), threading.Event()
    path.write_bytes(b"0" * 5000)

    def watch():
        while not is_done.is_set():
            content = path.read_bytes()
            sizes.add((len(content), len(set(content))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    for digit in b"123456789":
        with replacing(path) as file:
            for _ in range(50):
                file.write(bytes([digit]) * 100)
                file.flush()
    is_done.set()
    watcher.join()
    assert sizes == {(5000, 1)}


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666])
def test_a_replaced_file_keeps_its_mode(mode, tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(mode)
    with replacing(tmp_path / "a") as file:
        file.write(b"new")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "a")
    with replacing(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert contents(tmp_path / "elsewhere") == {"a": b"new"}


def test_a_device_is_written_to_and_stays_one():
    with replacing(os.devnull) as file:
        file.write(b"x")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)  # noqa: PTH116 - as short


def test_a_pipe_is_written_to_by_its_name():
    reader, writer = os.pipe()
    with replacing(f"/dev/fd/{writer}") as file:
        file.write(b"x")
    os.close(writer)
    assert os.read(reader, 10) == b"x"
    os.close(reader)


def test_a_folder_that_is_not_there_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "no" / "a"):
        pytest.fail("there is nothing to write to")


def test_a_file_that_fails_its_check_leaves_what_was_there(tmp_path):
    path, seen = tmp_path / "file", []
    path.write_bytes(b"before")

    def refuse(new):
        seen.append(new.read_bytes())
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), replacing(path, refuse) as file:
        file.write(b"after")
    assert seen == [b"after"]
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture(params=["ENOSYS", "EPERM", "ENOTSUP", "EXDEV", "EMFILE"])
def no_rename(request, monkeypatch):
    """Let nothing be renamed, as on mounted object storage."""

    def refuse(*_):
        raise OSError(getattr(errno, request.param), "no renaming here")

    monkeypatch.setattr(Path, "rename", refuse)
    monkeypatch.setattr(Path, "replace", refuse)


@pytest.mark.usefixtures("no_rename")
@pytest.mark.parametrize("is_there", [True, False])
def test_a_folder_is_emptied_and_written_and_marked_last(is_there, tmp_path):
    path = tmp_path / "out"
    if is_there:
        (path / "old").mkdir(parents=True)
        (path / "old" / "a").touch()
        (path / SUCCESS).touch()
    with writing_folder(path) as folder:
        assert contents(path) == {INCOMPLETE: b""}
        with replacing(folder / "a.csv") as file:
            file.write(b"new")
        with pytest.raises(UserError, match="must be complete"):
            TableFolder.find(path)
    assert contents(path) == {"a.csv": b"new", SUCCESS: b""}
    assert [*tmp_path.iterdir()] == [path]
    assert [file.name for file in TableFolder.find(path).paths] == ["a.csv"]


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_an_empty_folder_or_none(error, is_there, tmp_path):
    path = tmp_path / "out"
    if is_there:
        path.mkdir()

    def write_and_fail():
        with writing_folder(path) as folder:
            (folder / "a").touch()
            raise error

    with pytest.raises(error):
        write_and_fail()
    assert [*tmp_path.rglob("*")] == [path] * is_there


@pytest.mark.slow
def test_a_folder_whose_writer_was_killed_is_not_taken_for_whole(tmp_path):
    code = """if True:
        import os, signal, sys
        from fewlier.files.atomic import replacing, writing_folder
        with writing_folder(sys.argv[1]) as folder:
            with replacing(folder / "a.csv") as file:
                file.write(b"a")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "out"], check=False)
    assert done.returncode == -signal.SIGKILL
    assert contents(tmp_path / "out") == {"a.csv": b"a", INCOMPLETE: b""}
    with pytest.raises(UserError, match=INCOMPLETE):
        TableFolder.find(tmp_path / "out")
    with writing_folder(tmp_path / "out") as folder:
        assert contents(folder) == {INCOMPLETE: b""}


def test_a_copy_that_fails_half_way_leaves_nothing(tmp_path, monkeypatch):
    def fill(source, target):
        target.write_bytes(source.read_bytes()[:2])
        raise OSError(errno.ENOSPC, "No space left on device")

    def refuse(*_):
        raise OSError(errno.EXDEV, "no renaming here")

    monkeypatch.setattr(Path, "replace", refuse)
    monkeypatch.setattr("shutil.copyfile", fill)
    with pytest.raises(OSError, match="No space"), replacing(tmp_path / "a") as file:
        file.write(b"new")
    assert contents(tmp_path) == {}


def test_a_file_that_may_not_be_replaced_stays(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, "it belongs to somebody else")

    monkeypatch.setattr(Path, "replace", refuse)
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(PermissionError), replacing(tmp_path / "a") as file:
        file.write(b"new")
    assert contents(tmp_path) == {"a": b"old"}


def test_a_folder_that_grows_while_it_is_removed_is_removed_all_the_same(tmp_path, monkeypatch):
    """A worker that is told to end may add a file meanwhile."""
    import shutil

    def remove_and_add(path, **options):
        monkeypatch.undo()
        shutil.rmtree(path, **options)
        path.mkdir()
        (path / "late").touch()

    monkeypatch.setattr("shutil.rmtree", remove_and_add)

    def fail():
        with writing_folder(tmp_path / "out") as folder:
            (folder / "sub").mkdir()
            raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        fail()
    assert contents(tmp_path) == {}


def test_a_folder_that_somebody_keeps_writing_to_stays_marked(tmp_path, monkeypatch):
    """A worker that does not end in time may leave a file; the error is still the first one."""
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)  # what is there comes again

    def fail():
        with writing_folder(tmp_path / "out") as folder:
            (folder / "a.csv").touch()
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert set(contents(tmp_path / "out")) == {"a.csv", INCOMPLETE}
