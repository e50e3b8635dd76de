"""Model files changed at random: refused as a `FormatError`, or loaded."""

import zipfile

import numpy as np
import pytest
from factories import visits
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from model_files import fitted, nodes, parts_of, replace_at, rewritten

from fewlier import AnomalyDetector, FormatError
from fewlier.density import DENSITIES
from fewlier.modelfile.container import MANIFEST, WEIGHTS


def loads_or_is_refused(path):
    try:
        return AnomalyDetector.load(path)
    except FormatError as error:
        message = str(error)
    assert path.name in message
    return None


@pytest.mark.slow
@given(st.data())
@settings(max_examples=50)
def test_flipped_bytes_are_refused_or_change_no_score(detector, saved, folder, data):
    content = bytearray(saved.read_bytes())
    # Half of them in the zip's own records, at the end, which no checksum covers.
    places = st.integers(0, len(content) - 1) | st.integers(len(content) - 150, len(content) - 1)
    for place in data.draw(st.lists(places, min_size=1, max_size=4, unique=True)):
        content[place] ^= data.draw(st.integers(1, 255))
    path = folder / "flipped.fewlier"
    path.write_bytes(content)
    loaded = loads_or_is_refused(path)
    if loaded is not None:
        np.testing.assert_array_equal(
            loaded.anomaly_score(visits()), detector.anomaly_score(visits())
        )


@pytest.mark.slow
@given(st.floats(0, 1, exclude_max=True), st.binary(max_size=30))
@settings(max_examples=50)
def test_truncated_files_are_refused(saved, folder, share, rest):
    content = saved.read_bytes()
    truncated = content[: int(share * len(content))] + rest
    assume(truncated != content)
    path = folder / "truncated.fewlier"
    path.write_bytes(truncated)
    assert loads_or_is_refused(path) is None


@pytest.mark.slow
@given(st.data())
@settings(max_examples=50)
def test_changed_parts_with_right_checksums_raise_nothing_but_format_errors(saved, folder, data):
    with zipfile.ZipFile(saved) as archive:
        parts = [bytearray(archive.read(name)) for name in (MANIFEST, WEIGHTS)]
    part = data.draw(st.sampled_from(parts))
    place = data.draw(st.integers(0, len(part) - 1))
    part[place] = data.draw(st.integers(0, 255))
    loads_or_is_refused(rewritten(folder / "changed.fewlier", *map(bytes, parts)))


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
JSON = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text(), SCALARS, max_size=2)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=50)
def test_any_other_value_in_the_manifest_raises_nothing_but_a_format_error(saved, folder, data):
    manifest, tensors = parts_of(saved)
    place = data.draw(st.sampled_from(list(nodes(manifest))))
    replace_at(manifest, place, data.draw(JSON))
    loads_or_is_refused(rewritten(folder / "value.fewlier", manifest, tensors))


@pytest.fixture(scope="module", params=sorted(set(DENSITIES) - {"made"}))
def other(request, folder):
    """The file of a detector with each of the other densities."""
    sizes = {"latent": 2, "n_samples": 3, "n_transforms": 2}
    path = folder / f"{request.param}.fewlier"
    fitted(density=request.param, **sizes).save(path)
    return path


@pytest.mark.parametrize("name", ["hidden", "latent", "n_samples", "n_transforms", "n_components"])
def test_sizes_beyond_the_file_are_refused_before_they_are_allocated(other, folder, name):
    manifest, tensors = parts_of(other)
    if name not in manifest["model"]["ensemble"]["density"]:
        return  # not a size of this density
    largest = 2**31 - 1
    manifest["model"]["ensemble"]["density"][name] = [largest] if name == "hidden" else largest
    # An autoencoder's code is at most half as long as the row, whatever is asked for.
    loads_or_is_refused(rewritten(folder / "sizes.fewlier", manifest, tensors))
    if name == "hidden":
        with pytest.raises(FormatError, match=r"is int64 \[|is float32 \["):
            AnomalyDetector.load(folder / "sizes.fewlier")


@pytest.mark.slow
@given(st.data())
@settings(max_examples=40)
def test_other_densities_too_raise_nothing_but_a_format_error(other, folder, data):
    manifest, tensors = parts_of(other)
    density = manifest["model"]["ensemble"]["density"]
    place = data.draw(st.sampled_from(list(nodes(density))))
    replace_at(density, place, data.draw(JSON | st.integers(1, 2**31 - 1)))
    loads_or_is_refused(rewritten(folder / "other.fewlier", manifest, tensors))
