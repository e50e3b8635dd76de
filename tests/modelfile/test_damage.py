"""Model files with right checksums and wrong content, each refused with a reason."""

import copy

import numpy as np
import pytest
from factories import visits
from model_files import first_nodes, fitted, parts_of, replace_at, rewritten

from fewlier import AnomalyDetector, FormatError
from fewlier.fitting.kept_rows import ROLES
from fewlier.modelfile.file import Saved
from fewlier.modelfile.state import State


def refused(manifest, tensors):
    """Read damaged content as a load does, and return why it is refused."""
    with pytest.raises(FormatError) as caught:
        Saved.from_state(State(manifest, tensors), AnomalyDetector().get_params())
    return str(caught.value)


def content_of(path):
    """Return what the objects in a file say: all but the name and version of the format."""
    manifest, tensors = parts_of(path)
    return {key: v for key, v in manifest.items() if key not in ("format", "version")}, tensors


def changed_at(document, place, value):
    """Return a copy of a JSON document with another value at a place."""
    document = copy.deepcopy(document)
    replace_at(document, place, value)
    return document


@pytest.mark.slow
def test_every_field_is_read_and_its_type_checked(saved):
    manifest, tensors = content_of(saved)
    places = first_nodes(manifest)
    assert ("model", "calibration", "threshold") in places
    for place in places:
        wrong = changed_at(manifest, place, {"wrong": ["type"]})
        refused(wrong, tensors)


@pytest.mark.slow
def test_every_field_must_be_there_and_no_other(saved):
    manifest, tensors = content_of(saved)
    free = {("summary", "kinds"), ("summary", "labelled_kinds")}
    for place in [(), *first_nodes(manifest)]:
        damaged = copy.deepcopy(manifest)
        record = damaged
        for key in place:
            record = record[key]
        if isinstance(record, dict) and place not in free:
            more = changed_at(manifest, (*place, "more"), 1)
            path = ".".join(map(str, (*place, "more")))
            assert path in refused(more, tensors)
            for key in list(record):
                value = record.pop(key)
                refused(damaged, tensors)
                record[key] = value


@pytest.mark.slow
def test_every_array_is_read_and_its_type_shape_and_numbers_checked(saved):
    manifest, tensors = content_of(saved)
    for name, array in tensors.items():
        changes = [None, array[None], array.astype("f8" if array.dtype == "f4" else "f4")]
        if array.dtype.kind == "f" and array.size:
            changes += [np.full_like(array, np.nan), np.full_like(array, np.inf)]
        for change in changes:
            others = {key: value for key, value in tensors.items() if key != name}
            if change is not None:
                others[name] = change
            refused(manifest, others)


def test_an_array_that_no_part_reads_is_refused(saved):
    manifest, tensors = content_of(saved)
    more = {f"{name}.more": array for name, array in tensors.items()}
    assert "which fewlier does not write" in refused(manifest, tensors | more)


VIEW, OTHER = (f"model.parts.neighbours.views.{number}" for number in (0, 1))
IN_MANIFEST = {
    "another format": ("format", "onnx", "names another format"),
    "newer version": ("version", 5, "version is 5, newer than .*Upgrade fewlier"),
    "no version": ("version", "1", "format version is not a positive integer"),
    "true as version": ("version", True, "format version is not a positive integer"),
    "code": ("code", "import os", "it holds .'code'., which fewlier does not write"),
    "selection": ("model.ensemble.selection", "worst", "must be one of average, best"),
    "no columns": ("model.encoder.schema.columns", [], "it has no columns"),
    "fewer statistics": ("model.encoder.stats", [], "not all of its columns have statistics"),
    "kind": ("model.encoder.schema.columns.0.kind", "date", "kind' must be one of real"),
    "statistics": ("model.encoder.stats.1.mean_target", 1e300, "must score .* they score"),
    "conditional": ("model.encoder.schema.columns.0.conditional", "poisson", "unknown 'poisson'"),
    "density": ("model.ensemble.density.name", "os.system", "must be one of made"),
    "hidden": ("model.ensemble.density.hidden", [0], "'hidden' must be a sequence of integers"),
    "wide": ("model.ensemble.density.hidden", [10**9], "degrees_0' is"),
    "wide and deep": ("model.ensemble.density.hidden", [2**31 - 1] * 2, "are too large"),
    "deep": (
        "model.ensemble.density.hidden",
        [8] * 10**5,
        "'hidden' must be at most 100 layers",
    ),
    "orderings": ("model.ensemble.density.n_orderings", 10**9, "positions' is int64"),
    "more orderings": ("model.ensemble.density.n_orderings", 1000, "positions' is int64"),
    "components": ("model.ensemble.density.n_components", 10**9, "smaller than the sizes of"),
    "huge": ("model.ensemble.density.n_orderings", 2**40, "integer from 1 to 2147483647"),
    "no ordering": ("model.ensemble.density.n_orderings", 0, "integer from 1 to 2147483647"),
    "one wider": ("model.ensemble.density.hidden", [9], "degrees_0' is"),
    "one narrower": ("model.ensemble.density.hidden", [7], "degrees_0' is"),
    "foreign size": ("model.ensemble.density.latent", 2, "holds .*latent.*, which fewlier"),
    "no member": ("model.ensemble.members", [], "positive weight each"),
    "no pass": ("model.ensemble.members.0.passes", [], "must be ascending numbers"),
    "passes twice": ("model.ensemble.members.0.passes", [1, 1], "must be ascending numbers"),
    "far pass": ("model.ensemble.members.0.passes", [0, 3], "list of integers from 0 to 2"),
    "other pass": ("model.ensemble.members.0.passes", [2], "must score .* they score"),
    "weight": ("model.ensemble.weights.0", -0.5, "positive weight each"),
    "weight sum": ("model.ensemble.weights.0", 0.9, "do not sum to 1"),
    "no weight": ("model.ensemble.weights", [1.0], "positive weight each"),
    "lambda": ("model.ensemble.members.0.lam", -1.0, "number from 0"),
    "far fold": ("model.ensemble.members.0.fold", 64, "integer from 0 to 63"),
    "scale": ("model.ensemble.members.0.scale", 0.0, "number between 0 and inf"),
    "no neighbours": ("model.parts.neighbours", None, "'model.parts.neighbours' must be a"),
    "no trees": ("model.parts.trees", None, "'model.parts.trees' must be a record"),
    "share": ("model.parts.neighbours.share", 1.0, "number between 0 and 1"),
    "other share": ("model.parts.neighbours.share", 0.1, "must score .* they score"),
    "no view": ("model.parts.neighbours.views", [], "once on each scale"),
    "view": ("model.parts.neighbours.views.0.space.coordinates.name", "ranks", "must be one of"),
    "view spread": (f"{VIEW}.spread", 0.0, "number between 0"),
    "normal weight": (f"{VIEW}.normal_weight", 0.5, "number from 1"),
    "other weight": (f"{VIEW}.normal_weight", 9.5, "must score .* they score"),
    "trees share": ("model.parts.trees.share", 0.99, "shares of its parts"),
    "trees spread": ("model.parts.trees.spread", -1.0, "number between 0"),
    "rules share": ("model.parts.rules.share", 0.0, "number between 0 and 1"),
    "rules spread": ("model.parts.rules.spread", 0.0, "number between 0"),
    "prior": ("model.calibration.prior", 1.0, "number between 0 and 1"),
    "edges": ("model.reference.n_edges.0", 65, "list of integers from 0 to 64"),
    "fewer edges": ("model.reference.n_edges.0", 3, "edges' is float32"),
    "forgotten": ("kept_rows", None, "it holds .'kept_rows.*which fewlier does not write"),
    "probe count": ("probes.rows", [], "does not have 3 probe rows"),
    "probe cell": ("probes.rows.0.0", "old", "does not fit its columns"),
    "probe row": ("probes.rows.0", [1.0], "does not fit its columns"),
    "probe value": ("probes.rows.0.0", 900.0, "must score .* they score"),
    "probe score": ("probes.scores.1", 1e6, "must score .* they score"),
    "lambdas": ("parameters.training.lambdas", [], "'lambdas' must be"),
    "sizes": ("parameters.density.hidden", 8, "'hidden' must be"),
    "no density": ("parameters.density", [], "must be a record"),
    "density name": ("parameters.density", "nade", "'density' must be one of"),
    "keep rows": ("parameters.keep_rows", 1, "'keep_rows' must be True or False"),
    "epochs": ("parameters.training.max_epochs", 0, "'max_epochs' must be"),
    "device": ("parameters.device", "tpu", "must be one of auto, cpu, cuda"),
    "columns": ("parameters.columns", {"age": 1}, "record of texts"),
    "rows": ("summary.n_normal", -1, "integer from 0"),
    "lambda weights": ("summary.lambda_weights", [[1.0]], "list of pairs of numbers"),
    "curve": ("summary.history.0.epochs", [], "a value for each epoch"),
}


@pytest.mark.parametrize(("place", "value", "message"), IN_MANIFEST.values(), ids=IN_MANIFEST)
def test_a_wrong_value_is_refused(place, value, message, saved, folder):
    manifest, tensors = parts_of(saved)
    keys = [int(key) if key.isdecimal() else key for key in place.split(".")]
    replace_at(manifest, keys, value)
    damaged = rewritten(folder / "damaged.fewlier", manifest, tensors)
    with pytest.raises(FormatError, match=f"damaged.fewlier' is not .*(?:{message})"):
        AnomalyDetector.load(damaged)


def test_a_best_member_has_no_companions(saved, folder):
    path = folder / "best.fewlier"
    fitted(selection="best").save(path)
    manifest, tensors = content_of(path)
    assert manifest["model"]["parts"] == {}
    average, arrays = content_of(saved)
    for name, message in (("trees", "no other parts than"), ("neighbours", "its best member")):
        damaged = changed_at(manifest, ("model", "parts", name), average["model"]["parts"][name])
        more = {key: v for key, v in arrays.items() if key.startswith(f"model.parts.{name}.")}
        assert message in refused(damaged, tensors | more)


def changed(name, change):
    """Return a change of the tensors: one of them, copied and changed in place."""

    def apply(tensors):
        array = tensors[name].copy()
        change(array)
        return tensors | {name: array}

    return apply


def put(index, value):
    return lambda array: array.__setitem__(index, value)


def without_role(name):
    """Return a change of roles: in the last fold nobody plays this one."""
    return lambda roles: roles.__setitem__(-1, roles[-1] & ~np.uint8(1 << ROLES.index(name)))


FIRST, THIRD = (f"model.ensemble.members.{i}.parameters.network.weights.0" for i in (0, 2))
IN_WEIGHTS = {
    "ordering": (
        "model.ensemble.density.positions",
        put((0, 0), 9),
        "permutation",
    ),
    "twice": ("model.ensemble.density.positions", put((0, slice(2)), 0), "permutation"),
    "degree": ("model.ensemble.density.degrees_0", put((0, 0), -1), "degrees out of range"),
    "degrees": ("model.ensemble.density.degrees_0", put((0, 0), 4), "degrees out of range"),
    "unsorted": ("model.calibration.normal_scores", put(0, 1e9), "not sorted"),
    "others": (FIRST, put(slice(None), 3.0), "must score .* they score"),
    "neighbour": (f"{VIEW}.normals.points", put((0, 0), 99.0), "further away than any row can"),
    "typical": (f"{VIEW}.normals.typical", put(0, 0.0), "is not positive"),
    "impossible": (f"{OTHER}.normals.impossible", put(0, -1.0), "is not positive"),
    "input scale": (f"{VIEW}.space.coordinates.scale", put(0, 0.0), "scale of its neighbours"),
    "knots": (f"{OTHER}.space.coordinates.knots", put((0, 0), 1e9), "not in order"),
    "normal scores": (f"{OTHER}.space.coordinates.scores", put((0, -1), 9.0), "out of range"),
    "no weight": (f"{VIEW}.space.weight", put(0, 0.0), "column weight"),
    "all weight": (f"{OTHER}.space.weight", put(0, 1e3), "column weight"),
    "weights": (
        f"{VIEW}.space.weight",
        lambda w: put(slice(None), w[::-1].copy())(w),
        "further away|must score",
    ),
    "input mean": (f"{VIEW}.space.coordinates.mean", put(0, 3e38), "must score .* they score"),
    "child": ("model.parts.trees.learned.right", put(0, 0), "trees are out of range"),
    "tree's feature": ("model.parts.trees.learned.feature", put(0, 99), "trees are out of range"),
    "trees' values": (
        "model.parts.trees.learned.value",
        lambda v: put(slice(None), v[::-1].copy())(v),
        "must score .* they score",
    ),
    "trees' centre": ("model.parts.trees.centre", put(0, 99.0), "must score .* they score"),
    "rules' steps": ("model.parts.rules.learned.thresholds", put((0, 0), 1e9), "not in order"),
    "rules' values": ("model.parts.rules.learned.values", put(slice(None), 9.0), "must score"),
    "flag": ("kept_rows.rows.observed", put((0, 0), 2), "observed' must hold 0 or 1"),
    "flags": ("kept_rows.rows.impossible", put((2, 1), 255), "impossible' must hold 0 or 1"),
    "count": ("kept_rows.counted", put(5, 2), "counted' must hold 0 or 1"),
    "label": ("kept_rows.labels", put(5, 2), "unknown label"),
    "labels": ("kept_rows.labels", put(slice(None), 0), "anomalies are not labelled so"),
    "no role": ("kept_rows.roles", put(slice(None), 0), "do not play every role"),
    "unknown role": ("kept_rows.roles", put((0, 0), 32), "known roles"),
    "no normals": ("kept_rows.roles", without_role("normals"), "do not play every role"),
    "no choice": ("kept_rows.roles", without_role("validation_normals"), "do not play every"),
    "no calibration": ("kept_rows.roles", without_role("calibration"), "do not play every role"),
    "code beyond": ("kept_rows.rows.targets", put((slice(None), 4), 9.0), "codes beyond"),
    "part of a code": ("kept_rows.rows.targets", put((slice(None), 4), 0.5), "codes beyond"),
    "third of two": ("kept_rows.rows.targets", put((slice(None), 3), 2.0), "codes beyond"),
    "negative count": ("kept_rows.rows.targets", put((slice(None), 1), -3.0), "below 0"),
    "negative bins": ("model.reference.counts", put(0, -1), "negative counts"),
    "endless bins": ("model.reference.counts", put(slice(3), 2**62), "count the same rows"),
    "more in a bin": ("model.reference.counts", lambda n: put(0, n[0] + 1)(n), "same rows"),
    "edges": ("model.reference.edges", put(0, 9.0), "not sorted"),
    # No probe row has the first level, nor gaps in the second column and the last two.
    "huge for a level": (THIRD, put([4, 8], 3e38), "not finite"),
    "huge for gaps": (FIRST, put([10, 11], 3e38), "not finite"),
}


@pytest.mark.parametrize(("name", "change", "message"), IN_WEIGHTS.values(), ids=IN_WEIGHTS)
def test_wrong_numbers_are_refused(name, change, message, saved, folder):
    manifest, tensors = parts_of(saved)
    damaged = rewritten(folder / "weights.fewlier", manifest, changed(name, change)(tensors))
    with pytest.raises(FormatError, match=f"weights.fewlier' .*{message}"):
        AnomalyDetector.load(damaged)


def test_exchanged_members_are_refused(saved):
    manifest, tensors = content_of(saved)
    second = FIRST.replace("members.0", "members.1")
    exchanged = tensors | {FIRST: tensors[second], second: tensors[FIRST]}
    assert "must score" in refused(manifest, exchanged)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("model.ensemble.density.flow.positions", "permutation"),
        ("model.ensemble.density.flow.degrees_0", "degrees out of range"),
        ("model.ensemble.density.others.degrees_0", "degrees out of range"),
    ],
)
def test_a_flow_whose_columns_would_see_themselves_is_refused(name, message, folder):
    path = folder / "flow.fewlier"
    fitted(visits()[["age", "spend", "city"]].assign(income=visits(1)["age"]), density="flow").save(
        path
    )
    manifest, tensors = parts_of(path)
    first = (0,) * tensors[name].ndim
    damaged = rewritten(path, manifest, changed(name, put(first, 9))(tensors))
    with pytest.raises(FormatError, match=message):
        AnomalyDetector.load(damaged)
