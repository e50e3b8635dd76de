import os
import stat
import threading

import pytest

from fewlier.atomic import replacing


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
