"""What a model file says of its model, read and checked without building a network."""

import math
from operator import lt
from typing import TypeAlias

from fewlier.atomic import PathLike
from fewlier.decision.drift import MAX_EDGES
from fewlier.errors import FormatError
from fewlier.modelfile.container import MANIFEST, Archive, opened, parse_json
from fewlier.score.limits import MAX_NEIGHBOURS, MAX_NODES
from fewlier.state import Json, fields_of, is_finite_float, require
from fewlier.table import Column, ColumnStats, Encoder, Kind

FORMAT, VERSION = "fewlier", 1
N_PROBES = 3
MAX_FOLDS = 64
"""Times that the rows of a fit are split; a fit by default has two."""
MAX_LAYERS = 20_000  # on a row's way; a fit by default has some hundred

_FIELDS = (
    *("format", "version", "versions", "encoder", "density", "selection"),
    *("members", "calibration", "memory", "reference", "neighbours"),
    *("forest", "probes", "extra"),
)
_SIZES = ("n_components", "n_orderings", "n_masks", "latent", "n_samples", "n_transforms")
_FLOWS = ("maf", "nsf")
_COUNTS = ("n_normal_scores", "n_training_scores")
_LARGEST_INT = 2**31 - 1
_FAR = 1e300
_UNSEEN = "(a category never seen)"
_ITEM_BYTES = {"F32": 4, "F64": 8, "I32": 4, "I64": 8, "I8": 1, "U8": 1}

Layout: TypeAlias = dict[str, tuple[str, list[int]]]
"""Type, as safetensors names it, and shape of arrays by name."""


def read_manifest(path: PathLike) -> Json:
    """Return what a model file says of its model, checked, without building it."""
    with opened(path) as archive:
        return manifest_of(archive)


def manifest_of(archive: Archive) -> Json:
    """Return the manifest of an open model file, checked."""
    manifest = parse_json(archive.read(MANIFEST), "its manifest")
    check_manifest(manifest)
    return manifest


def check_manifest(manifest: Json) -> None:
    """Refuse a manifest that this version of fewlier cannot have written."""
    require(manifest.get("format") == FORMAT, "its manifest names another format.")
    version = manifest.get("version")
    require(_is_int(version, 1), "its format version is no positive integer.")
    if version != VERSION:
        raise FormatError(
            f"its format version is {version}, newer than {VERSION}, the newest this fewlier "
            "reads. Upgrade fewlier."
        )
    fields_of(manifest, "its manifest", _FIELDS)
    versions = fields_of(manifest["versions"], "its versions", ("fewlier", "torch"))
    require(all(isinstance(v, str) for v in versions), "its versions are no texts.")
    require(manifest["selection"] in ("average", "best"), "its selection is unknown.")
    require(isinstance(manifest["extra"], dict), "what it says of the detector is no record.")
    encoder = Encoder.from_json(manifest["encoder"])
    _check_density(manifest["density"])
    _check_members(manifest["members"], manifest["selection"])
    require(n_layers(manifest) <= MAX_LAYERS, f"a row passes more than {MAX_LAYERS} layers.")
    _check_calibration(manifest["calibration"])
    _check_memory(manifest["memory"])
    _check_reference(manifest["reference"], encoder)
    _check_neighbours(manifest["neighbours"], manifest["selection"])
    _check_forest(manifest["forest"], manifest["neighbours"])
    _check_probes(manifest["probes"], encoder)


def n_layers(manifest: Json) -> int:
    """Bound the layers that scoring a row evaluates; each takes time, however small the file."""
    density = manifest["density"]
    n_passes: int = max(density[name] for name in ("n_orderings", "n_masks", "n_samples"))
    depth: int = density["n_transforms"] * (len(density["hidden"]) + 1)
    return len(manifest["members"]) * n_passes * depth


def memory_layout(manifest: Json, encoder: Encoder) -> Layout:
    """Return the type and shape of the arrays that hold the rows a model keeps, if it does."""
    if manifest["memory"] is None:
        return {}
    n, n_folds = manifest["memory"]["n_rows"], manifest["memory"]["n_folds"]
    return {
        "memory.inputs": ("F32", [n, encoder.n_inputs]),
        "memory.targets": ("F32", [n, encoder.n_columns]),
        "memory.observed": ("U8", [n, encoder.n_columns]),
        "memory.impossible": ("U8", [n, encoder.n_columns]),
        "memory.labels": ("I8", [n]),
        "memory.counted": ("U8", [n]),
        "memory.novel": ("U8", [n, encoder.n_columns]),
        "memory.roles": ("U8", [n_folds, n]),
    }


def reference_layout(manifest: Json) -> Layout:
    """Return the type and shape of the counts of training normals."""
    n_edges, n_bins = (sum(manifest["reference"][name]) for name in ("n_edges", "n_bins"))
    edges: Layout = {"reference.edges": ("F32", [n_edges])} if n_edges else {}
    return edges | {"reference.counts": ("I64", [n_bins])}


def neighbours_layout(manifest: Json, encoder: Encoder) -> Layout:
    """Return the type and shape of the rows that a row is compared with, if a model has them."""
    record = manifest["neighbours"]
    if record is None:
        return {}
    layout: Layout = {
        "neighbours.mean": ("F32", [encoder.n_inputs]),
        "neighbours.scale": ("F32", [encoder.n_inputs]),
        "neighbours.weight": ("F32", [encoder.n_columns]),
    }
    for side in ("normals", "anomalies"):
        if record[f"n_{side}"]:
            layout[f"neighbours.{side}.rows"] = ("F32", [record[f"n_{side}"], encoder.n_inputs])
            for name in ("typical", "outside"):
                layout[f"neighbours.{side}.{name}"] = ("F64", [encoder.n_columns])
    return layout


def forest_layout(manifest: Json, encoder: Encoder) -> Layout:
    """Return the type and shape of the nodes of a model's trees, if it has them."""
    if manifest["forest"] is None:
        return {}
    n_nodes, n_columns = manifest["forest"]["n_nodes"], encoder.n_columns
    dtypes = {"feature": "I32", "threshold": "F32", "right": "I32", "value": "F64"}
    return {f"forest.{name}": (dtype, [n_nodes]) for name, dtype in dtypes.items()} | {
        "forest.scale": ("F32", [encoder.n_inputs + n_columns]),
        "forest.centre": ("F64", [n_columns]),
    }


def bytes_of(layout: Layout) -> int:
    """Return the bytes of all arrays of a layout."""
    return sum(_ITEM_BYTES[dtype] * math.prod(shape) for dtype, shape in layout.values())


def probe_rows(encoder: Encoder) -> list[list[float | str | None]]:
    """Make up three rows from the encoder's statistics: middling, high, and with a cell missing."""
    columns = list(zip(encoder.schema.columns, encoder.stats, strict=True))
    middle, high = ([_probe_cell(*column, share) for column in columns] for share in (0.5, 0.9))
    return [middle, high, [None, *middle[1:]]]


def extreme_rows(encoder: Encoder) -> list[list[float | str | None]]:
    """Make up rows at the ends of what can be scored: all missing, far out, and every level."""
    columns = encoder.schema.columns
    rows: list[list[float | str | None]] = [[None for _ in columns]]
    for number in (-_FAR, _FAR):
        rows.append([_UNSEEN if c.kind is Kind.CATEGORY else number for c in columns])
    for code in range(int(encoder.n_levels.max(initial=0))):
        rows.append([_level(c, code) if c.levels else None for c in columns])
    return rows


def _level(column: Column, code: int) -> float | str:
    level = column.levels[code % len(column.levels)]
    return level if column.kind is Kind.CATEGORY else float(level)


def _probe_cell(column: Column, stats: ColumnStats, share: float) -> float | str | None:
    """Return a cell somewhere in the range of a column; None if the column never had a value."""
    if column.levels:
        return _level(column, int(share * len(column.levels)))
    match column.coding:
        case Kind.CATEGORY:
            return None
        case Kind.COUNT:
            return float(round(2 * share * stats.unit))
        case Kind.POSITIVE:
            return 2 * share * stats.unit
        case _:
            return stats.low + share * stats.span


def _check_density(record: object) -> None:
    names = ("name", "hidden", "flow", *_SIZES)
    name, hidden, flow, *sizes = fields_of(record, "its density", names)
    require(isinstance(name, str), "the name of its density is no text.")
    is_hidden = isinstance(hidden, list) and all(_is_int(width, 1) for width in hidden)
    require(flow in _FLOWS, "the flow of its density is unknown.")
    require(is_hidden and all(_is_int(n, 1) for n in sizes), "the sizes of its density are wrong.")


def _check_members(members: object, selection: str) -> None:
    require(isinstance(members, list) and len(members) > 0, "it has no list of members.")
    total = 0.0
    for record in members if isinstance(members, list) else ():
        names = ("weight", "lam", "fold", "scale", "passes")
        weight, lam, fold, scale, passes = fields_of(record, "a member", names)
        require(is_finite_float(lam) and lam >= 0, "the lambda of a member is no number >= 0.")
        require(_is_positive(weight), "the weight of a member is not positive.")
        is_fold = _is_int(fold, 0) and fold < MAX_FOLDS
        require(is_fold, f"the fold of a member is no integer from 0 to {MAX_FOLDS - 1}.")
        require(_is_positive(scale), "the scale of a member is not positive.")
        require(_is_passes(passes), "the passes of a member are no ascending numbers.")
        require(scale == 1 or selection == "average", "the scale of its best member is not 1.")
        total += weight
    require(abs(total - 1) <= 1e-6, "the weights of its members do not sum to 1.")


def _check_calibration(record: object) -> None:
    texts, sizes = ("guarantee", "rule"), ("n_above", "n_anomaly_scores")
    names = ("threshold", "prior", *texts, *sizes, *_COUNTS)
    threshold, prior, guarantee, rule, *counts = fields_of(record, "its calibration", names)
    require(is_finite_float(threshold), "its threshold is no finite number.")
    require(isinstance(guarantee, str), "its guarantee is no text.")
    require(isinstance(rule, str), "the rule of its threshold is no text.")
    is_above, n_anomalies, *rows = counts
    require(all(_is_int(n, 1) for n in rows), "its calibration has no positive numbers of rows.")
    require(_is_int(n_anomalies, 0), "its calibration has no number of anomalies.")
    require(_is_int(is_above, 0), "its calibration has no number of rows above the threshold.")
    is_share = prior is None or (is_finite_float(prior) and 0 < prior < 1)
    require(is_share, "its share of anomalies is none.")


def _check_memory(record: object) -> None:
    if record is not None:
        counts = fields_of(record, "its memory", ("n_rows", "n_folds"))
        require(all(_is_int(n, 1) for n in counts), "its memory has no positive sizes.")
        require(counts[1] <= MAX_FOLDS, f"its memory has more than {MAX_FOLDS} folds.")


def _check_reference(record: object, encoder: Encoder) -> None:
    n_edges, n_bins = fields_of(record, "its reference", ("n_edges", "n_bins"))
    for sizes in (n_edges, n_bins):
        is_list = isinstance(sizes, list) and len(sizes) == encoder.n_columns
        require(is_list and all(_is_int(n, 0) for n in sizes), "its reference has no sizes.")
    require(max(n_edges) <= MAX_EDGES, "its reference has too many edges.")


def _check_neighbours(record: object, selection: str) -> None:
    if record is None:
        return
    names = ("share", "alone", "lean", "spread", "n_normals", "n_anomalies")
    share, alone, lean, spread, *counts = fields_of(record, "its record of neighbours", names)
    require(selection == "average", "its best member has neighbours.")
    require(_is_positive(share) and share < 1, "the share of its neighbours is none.")
    require(_is_positive(spread), "the spread of its neighbours is not positive.")
    is_lean = _is_positive(lean) and is_finite_float(alone) and 0 <= alone <= 1 <= lean
    require(is_lean, "its neighbours lean to no side there is.")
    for n, least in zip(counts, (1, 0), strict=True):
        is_count = _is_int(n, least) and n <= MAX_NEIGHBOURS
        require(is_count, f"its neighbours are not {least} to {MAX_NEIGHBOURS} rows of a label.")


def _check_forest(record: object, neighbours: Json | None) -> None:
    if record is None:
        return
    share, spread, n_nodes = fields_of(record, "its forest", ("share", "spread", "n_nodes"))
    require(neighbours is not None, "its forest has no neighbours beside it.")
    others = neighbours["share"] if neighbours else 0.0
    require(_is_positive(share) and share + others < 1, "the share of its forest is none.")
    require(_is_positive(spread), "the spread of its forest is not positive.")
    is_count = _is_int(n_nodes, 1) and n_nodes <= MAX_NODES
    require(is_count, f"its forest has not 1 to {MAX_NODES} nodes.")


def _check_probes(record: object, encoder: Encoder) -> None:
    rows, scores = fields_of(record, "its probe rows", ("rows", "scores"))
    kinds = [column.kind for column in encoder.schema.columns]
    for values in (rows, scores):
        is_list = isinstance(values, list) and len(values) == N_PROBES
        require(is_list, f"it has other than {N_PROBES} probe rows with a score each.")
    for row in rows:
        is_row = isinstance(row, list) and len(row) == len(kinds)
        is_row = is_row and all(map(_is_cell, row, kinds))
        require(is_row, "a probe row does not fit its columns.")
    require(all(map(is_finite_float, scores)), "the score of a probe row is no finite number.")


def _is_cell(cell: object, kind: Kind) -> bool:
    if cell is None:
        return True
    return isinstance(cell, str) if kind is Kind.CATEGORY else is_finite_float(cell)


def _is_int(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= _LARGEST_INT


def _is_passes(value: object) -> bool:
    """Whether these may be numbers of passes."""
    if not isinstance(value, list) or not value or not all(_is_int(index, 0) for index in value):
        return False
    return all(map(lt, value, value[1:]))


def _is_positive(value: object) -> bool:
    return isinstance(value, float) and 0 < value < math.inf
