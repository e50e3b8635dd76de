"""The 16 tables of the paper: what each must hold, and where the collection keeps it.

The tables are files of the collection of Campos et al. (2016), "On the evaluation of unsupervised
outlier detection". Most of them exist there in several draws, v01 to v10; which one the paper used
is not known, and v01 is taken throughout. The paper (section "Data") says that duplicate rows were
removed. Yet for six tables its number of rows is that of the variant with duplicates, so that is
what `Entry.paper` names; `Entry.deduplicated` is the variant without them.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import final

from fewlier.errors import UserError

_SITE = "https://www.dbs.ifi.lmu.de/research/outlier-evaluation/input"


@final
@dataclass(frozen=True)
class Archive:
    """A file to download, and the checksum it must have."""

    url: str
    sha256: str


ARCHIVES = {
    "literature": Archive(
        f"{_SITE}/literature.tar.gz",
        "42a69b719f846bc03e4a6a0e5776969d4cd6b61a17675035c27753e7a6e0e256",
    ),
    "semantic": Archive(
        f"{_SITE}/semantic.tar.gz",
        "e77ad3d37baeb1e4025497496e2183d3d00c6ea2d1e603b2d388894b490fa71a",
    ),
}


@final
@dataclass(frozen=True)
class Variant:
    """One file of the collection, and what it must hold.

    `member` is its path in the archive; a ``*`` stands for any text, where the counts decide.
    `file` is its path in a folder of tables.
    """

    archive: str
    member: str
    file: str
    n_rows: int
    n_columns: int
    n_anomalies: int

    def difference(self, shape: tuple[int, ...], n_anomalies: int) -> str:
        """Say which counts differ from the expected ones; empty if none does."""
        n_rows, n_columns = shape
        counts = (
            ("rows", n_rows, self.n_rows),
            ("columns", n_columns, self.n_columns),
            ("anomalies", n_anomalies, self.n_anomalies),
        )
        return ", ".join(
            f"{found} {what} instead of {expected}"
            for what, found, expected in counts
            if found != expected
        )


@final
@dataclass(frozen=True)
class Entry:
    """A table of the paper: the variant with the paper's counts, and one without duplicates.

    The latter is None where the former has none already.
    """

    name: str
    paper: Variant
    deduplicated: Variant | None


# Name, archive, variant in the collection, rows, columns, anomalies.
_PAPER = (
    ("Annthyroid", "semantic", "norm_05_v01", 7016, 21, 350),
    ("Arrhythmia", "semantic", "withoutdupl_norm_20_v01", 305, 259, 61),
    ("Cardiotocography", "semantic", "norm_20_v01", 2068, 21, 413),
    ("HeartDisease", "semantic", "withoutdupl_norm_20_v01", 187, 13, 37),
    # With or without duplicates: only the counts of the latter are known to fit.
    ("InternetAds", "semantic", "*norm_10_v01", 1775, 1555, 177),
    ("Ionosphere", "literature", "withoutdupl_norm", 351, 32, 126),
    ("KDDCup99", "literature", "norm_1ofn", 60839, 79, 246),
    ("PageBlocks", "semantic", "norm_05_v01", 5171, 10, 258),
    ("Parkinson", "semantic", "withoutdupl_norm_20_v01", 60, 22, 12),
    ("PenDigits", "literature", "withoutdupl_norm_v01", 9868, 16, 20),
    ("Pima", "semantic", "withoutdupl_norm_20_v01", 625, 8, 125),
    ("Shuttle", "literature", "withoutdupl_norm_v01", 1013, 9, 13),
    ("SpamBase", "semantic", "norm_20_v01", 3485, 57, 697),
    ("Stamps", "semantic", "withoutdupl_norm_05_v01", 325, 9, 16),
    ("Waveform", "literature", "withoutdupl_norm_v01", 3443, 21, 100),
    ("Wilt", "semantic", "norm_02_v01", 4671, 5, 93),
)
# Rows and anomalies of the variants without duplicates, where the paper's counts are of those with.
_DEDUPLICATED = {
    "Annthyroid": (6942, 347),
    "Cardiotocography": (2060, 412),
    "KDDCup99": (48113, 200),
    "PageBlocks": (5139, 256),
    "SpamBase": (3160, 632),
    "Wilt": (4655, 93),
}


def _entry(name: str, archive: str, variant: str, rows: int, columns: int, anomalies: int) -> Entry:
    folder, file = f"{archive}/{name}", f"{name.lower()}.npz"
    member = f"{folder}/{name}_{variant}.arff"
    paper = Variant(archive, member, file, rows, columns, anomalies)
    deduplicated = None
    if name in _DEDUPLICATED:
        rows, anomalies = _DEDUPLICATED[name]
        member = f"{folder}/{name}_withoutdupl_{variant}.arff"
        file = f"withoutdupl/{file}"
        deduplicated = Variant(archive, member, file, rows, columns, anomalies)
    return Entry(name, paper, deduplicated)


CATALOGUE = {row[0]: _entry(*row) for row in _PAPER}


def list_datasets() -> list[Entry]:
    """Return the 16 tables in the paper's order.

    >>> [entry.name for entry in list_datasets()][:3]
    ['Annthyroid', 'Arrhythmia', 'Cardiotocography']
    """
    return list(CATALOGUE.values())


def find_entry(name: str) -> Entry:
    """Return the table of that name, in any case of letters."""
    names = {known.lower(): known for known in CATALOGUE}
    if name.lower() in names:
        return CATALOGUE[names[name.lower()]]
    close = [names[known] for known in get_close_matches(name.lower(), names, n=1)]
    hint = f"Did you mean {close[0]}?" if close else f"Choose one of {', '.join(CATALOGUE)}."
    raise UserError(f"A dataset must be one of the paper's {len(CATALOGUE)}; got {name!r}. {hint}")


def find_variant(name: str, *, deduplicated: bool = False) -> Variant:
    """Return the variant with the paper's counts, or the one without duplicates."""
    entry = find_entry(name)
    if not deduplicated:
        return entry.paper
    if entry.deduplicated is None:
        raise UserError(
            f"Dataset {entry.name} must have a second variant to be loaded deduplicated; got none: "
            "the paper's counts are of the variant without duplicates. Load it as it is."
        )
    return entry.deduplicated
