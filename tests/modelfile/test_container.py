"""The container of a model file: the zip, the JSON, the header of the arrays; writing it."""

import io
import os
import pickle  # noqa: TID251 - to show that it is refused
import re
import struct
import zipfile

import numpy as np
import pytest
import safetensors.numpy
import torch
from model_files import fitted, parts_of, rewritten, saved_as, zipped

from fewlier import AnomalyDetector, FormatError, UserError
from fewlier.modelfile.container import MANIFEST, MAX_BYTES, WEIGHTS

NO_JSON = {
    "deep": (b"[" * 10**6, "is not valid JSON"),
    "huge integer": (b'{"version": ' + b"9" * 5000 + b"}", "integer beyond 64 bits"),
    "long integer": (b'{"version": -' + b"9" * 20 + b"}", "integer beyond 64 bits"),
    "many values": (b'{"a": [' + b"[]," * 10**6 + b"1]}", "more than 1000000 values"),
    "NaN": (b'{"version": NaN}', "NaN is not a number"),
    "infinity": (b'{"version": -Infinity}', "-Infinity is not a number"),
    "overflow": (b'{"version": 1e999}', "beyond float64"),
    "key twice": (b'{"version": 1, "version": 2}', "a key twice"),
    "a list": (b"[]", "is not a JSON object"),
    "latin-1": (b'{"format": "\xe9"}', "is not valid JSON"),
    "nothing": (b"", "is not valid JSON"),
}


@pytest.mark.parametrize(("content", "message"), NO_JSON.values(), ids=NO_JSON)
def test_a_manifest_that_is_no_json_is_refused(content, message, saved, folder):
    damaged = rewritten(folder / "json.fewlier", content, parts_of(saved)[1])
    with pytest.raises(FormatError, match=f"json.fewlier' .*{message}"):
        AnomalyDetector.load(damaged)


def bytes_with_header(tensors, header):
    content = safetensors.numpy.save(tensors)
    (n,) = struct.unpack("<Q", content[:8])
    return content[:8] + header.ljust(n) + content[8 + n :]


def with_header(change):
    """Return weights whose header was changed as text, to a text of the same length."""

    def apply(tensors):
        content = safetensors.numpy.save(tensors)
        (n,) = struct.unpack("<Q", content[:8])
        return bytes_with_header(tensors, change(content[8 : 8 + n]))

    return apply


WEIGHTS_OF_ANOTHER_MAKE = {
    "empty": (lambda _: b"", "weights have no header"),
    "noise": (lambda _: b"\xff" * 10**5, "weights have no header"),
    "endless header": (lambda _: struct.pack("<Q", 2**40) + b"{}", "weights have no header"),
    "cut": (lambda t: safetensors.numpy.save(t)[:-1], "not what their header says"),
    "text": (with_header(lambda _: b"{"), "header of its weights is not valid JSON"),
    "no record": (lambda t: bytes_with_header(t, b'{"a": 1}'), "'a' has an unknown type or shape"),
    "type": (with_header(lambda h: h.replace(b'"F32"', b'"F16"', 1)), "unknown type or shape"),
    "type's type": (with_header(lambda h: h.replace(b'"F32"', b"[[0]]", 1)), "unknown type or"),
    "shape": (with_header(lambda h: h.replace(b"[12", b"[-1", 1)), "unknown type or shape"),
    "size": (with_header(lambda h: h.replace(b"[12", b"[13", 1)), "not what their header says"),
    "name twice": (
        with_header(lambda h: h.replace(b"members.1.", b"members.0.")),
        "a record has a key twice",
    ),
    "offsets": (
        with_header(lambda h: re.sub(rb'"data_offsets":\[\d+,', b'"data_offsets":[0,', h)),
        "are not safetensors",
    ),
}


@pytest.mark.parametrize(
    ("change", "message"), WEIGHTS_OF_ANOTHER_MAKE.values(), ids=WEIGHTS_OF_ANOTHER_MAKE
)
def test_weights_that_are_not_safetensors_are_refused(change, message, saved, folder):
    manifest, tensors = parts_of(saved)
    damaged = rewritten(folder / "weights.fewlier", manifest, change(tensors))
    with pytest.raises(FormatError, match=f"weights.fewlier' .*{message}"):
        AnomalyDetector.load(damaged)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([MANIFEST], "it has 1 parts in .*, not 2"),
        ([MANIFEST, WEIGHTS, "code.py"], "it has 3 parts in .*, not 2"),
        ([MANIFEST, WEIGHTS, WEIGHTS], "it has 3 parts in .*, not 2"),
        ([MANIFEST, MANIFEST], "its parts are"),
        ([MANIFEST, "/" + WEIGHTS], "its parts are"),
        ([MANIFEST, "../" + WEIGHTS], "its parts are"),
    ],
    ids=["one", "three", "twice", "manifests", "absolute", "above"],
)
def test_other_parts_are_refused(names, message, folder):
    path = zipped(folder / "parts.fewlier", [(name, b"{}") for name in names])
    with pytest.raises(FormatError, match=f"parts.fewlier' .*{message}"):
        AnomalyDetector.load(path)


def test_a_small_zip_that_ends_like_one_of_many_parts_is_refused_unread(folder):
    path = folder / "many.fewlier"
    locator = b"PK\x06\x07".ljust(20, b"\0")  # zipfile would look for a directory of any size there
    end = struct.pack("<4sHHHHLLH", b"PK\x05\x06", 0, 0, 2, 2, 100, 0, 0)
    path.write_bytes(bytes(200) + locator + end)
    with pytest.raises(FormatError, match="does not end as a zip"):
        AnomalyDetector.load(path)


def test_a_directory_larger_than_it_says_is_refused_unread(folder):
    path = zipped(folder / "lying.fewlier", [(str(i), b"") for i in range(1000)])
    content = bytearray(path.read_bytes())
    content[-14:-10] = struct.pack("<HH", 2, 2)
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"2 parts in a directory of \d+ bytes"):
        AnomalyDetector.load(path)


def test_parts_longer_than_the_file_are_refused(saved, folder):
    content = bytearray(saved.read_bytes())
    record = content.rindex(b"PK\x01\x02")  # the weights' place in the directory
    content[record + 20 : record + 28] = struct.pack("<LL", 2**31, 2**31)
    path = folder / "claims.fewlier"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"its parts claim \d+ of its \d+ bytes"):
        AnomalyDetector.load(path)


def test_swapped_parts_are_refused(saved, folder):
    with zipfile.ZipFile(saved) as archive:
        parts = [(MANIFEST, archive.read(WEIGHTS)), (WEIGHTS, archive.read(MANIFEST))]
    with pytest.raises(FormatError, match="manifest is not valid JSON"):
        AnomalyDetector.load(zipped(folder / "swapped.fewlier", parts))


def test_compressed_parts_are_refused_before_they_grow(folder):
    parts = [(MANIFEST, b"0" * 10**7), (WEIGHTS, b"0" * 10**7)]
    bomb = zipped(folder / "bomb.fewlier", parts, zipfile.ZIP_DEFLATED)
    with pytest.raises(FormatError, match="is compressed"):
        AnomalyDetector.load(bomb)


def test_a_manifest_too_large_is_refused_unread(folder, monkeypatch):
    path = zipped(folder / "large.fewlier", [(MANIFEST, b" " * 100), (WEIGHTS, b"")])
    monkeypatch.setitem(MAX_BYTES, MANIFEST, 99)
    with pytest.raises(FormatError, match="is larger than 99 bytes"):
        AnomalyDetector.load(path)


def test_a_model_of_too_many_categories_is_not_written(detector, folder, monkeypatch):
    monkeypatch.setattr("fewlier.modelfile.container.MAX_VALUES", 9)
    with pytest.raises(UserError, match="describe its columns in 9 values"):
        detector.save(folder / "unwritten.fewlier")


@pytest.mark.slow
def test_what_could_not_be_loaded_takes_the_place_of_nothing(tmp_path):
    path, detector = tmp_path / "model.fewlier", fitted()
    detector.save(path)
    before = path.read_bytes()
    detector.training.max_epochs = 2**31
    with pytest.raises(UserError, match=r"could not be loaded again: .*'max_epochs'.*Nothing was"):
        detector.save(path)
    detector.training.max_epochs = 3
    detector._kept_rows.encoded.targets[:, 4] = 9
    with pytest.raises(UserError, match=r"loaded again: 'kept_rows.rows' has codes beyond"):
        detector.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_model_of_too_many_layers_is_not_written(detector, folder, monkeypatch):
    monkeypatch.setattr("fewlier.score.ensemble.MAX_ROW_LAYERS", 3)
    with pytest.raises(UserError, match=r"a row passes \d+ layers of networks, more than 3"):
        detector.save(folder / "unwritten.fewlier")
    assert not (folder / "unwritten.fewlier").exists()


def test_a_model_too_large_is_not_written(detector, folder, monkeypatch):
    monkeypatch.setitem(MAX_BYTES, WEIGHTS, 99)
    with pytest.raises(
        UserError, match=r"'weights.safetensors' .* can take 99 bytes; this model needs"
    ):
        detector.save(folder / "unwritten.fewlier")
    assert not (folder / "unwritten.fewlier").exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", pickle.dumps({"a": 1}), np.random.default_rng(0).bytes(10_000)],
    ids=["nothing", "two bytes", "pickle", "noise"],
)
def test_what_is_no_zip_is_refused(content, folder):
    path = folder / "other.fewlier"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"other.fewlier' is not one .*(not a zip|end as a zip)"):
        AnomalyDetector.load(path)


def test_a_torch_file_is_refused(folder):
    torch.save({"a": torch.zeros(2)}, folder / "torch.fewlier")
    with pytest.raises(FormatError, match=r"as a zip|parts"):
        AnomalyDetector.load(folder / "torch.fewlier")


def test_a_file_that_is_not_there_is_the_users_error(tmp_path):
    for path in (tmp_path / "absent.fewlier", tmp_path):
        with pytest.raises(UserError, match=r"cannot be read: .* Check the path") as caught:
            AnomalyDetector.load(path)
        assert not isinstance(caught.value, FormatError)


def test_saving_over_a_file_replaces_it_and_leaves_nothing_else(detector, saved, tmp_path):
    path = tmp_path / "model.fewlier"
    path.write_text("old")
    detector.save(path)
    assert path.read_bytes() == saved.read_bytes()
    assert os.listdir(tmp_path) == ["model.fewlier"]  # noqa: PTH208 - hidden files too


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(
    failure, detector, tmp_path, monkeypatch
):
    path = tmp_path / "model.fewlier"
    path.write_text("old")

    def fail(_):
        raise failure

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises((UserError, KeyboardInterrupt)):
        detector.save(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_the_users_error(detector, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for name in ("absent/m.fewlier", "folder", "file/m.fewlier", 300 * "m"):
        path = tmp_path / name
        with pytest.raises(UserError, match="The model cannot be saved to"):
            detector.save(path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_detector_that_is_not_fitted_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        AnomalyDetector().save(tmp_path / "m.fewlier")


def test_a_parameter_that_json_cannot_hold_is_the_users_error(detector, tmp_path):
    strange = AnomalyDetector.load(saved_as(detector, tmp_path)).set_params(columns=object())
    with pytest.raises(UserError, match="must be text, numbers or lists; got <object"):
        strange.save(tmp_path / "strange.fewlier")


def test_the_zip_is_plain_and_any_tool_opens_it(saved):
    with zipfile.ZipFile(io.BytesIO(saved.read_bytes())) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [MANIFEST, WEIGHTS]
