"""Model files to take apart, to damage and to put together again."""

import json
import zipfile

import numpy as np
import safetensors.numpy
from factories import small, visits

from fewlier.modelfile.container import MANIFEST, WEIGHTS

N = 120
LABELS = np.repeat([1, 0], [6, N - 6])


def fitted(X=None, **changes):
    sizes = {"hidden": (8,), "n_orderings": 3, "max_epochs": 3, "learning_rate": 0.001}
    return small(**sizes | changes).fit(visits() if X is None else X, LABELS)


def saved_as(detector, tmp_path):
    detector.save(tmp_path / "model.fewlier")
    return tmp_path / "model.fewlier"


def parts_of(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read(MANIFEST)), safetensors.numpy.load(archive.read(WEIGHTS))


def zipped(path, parts, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts:
            archive.writestr(name, content)
    return path


def rewritten(path, manifest, tensors):
    """Write parts as they are, right or wrong, with checksums that fit."""
    content = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    weights = tensors if isinstance(tensors, bytes) else safetensors.numpy.save(tensors)
    return zipped(path, [(MANIFEST, content), (WEIGHTS, weights)])


def replace_at(document, path, value):
    *above, last = path
    for key in above:
        document = document[key]
    document[last] = value


def nodes(document, path=()):
    """List the path of every value in a JSON document."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from nodes(value, (*path, key))


def first_nodes(manifest):
    """List the paths in a manifest, of lists only into the first item."""
    return [place for place in nodes(manifest) if not any(type(k) is int and k for k in place)]
