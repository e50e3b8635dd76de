"""ADGym's benchmark: 28 of its tables, and the rows that its published methods trained and tested.

M. Jiang et al. (2023), "ADGym: Design Choices for Deep Anomaly Detection" (NeurIPS), publish what
17 methods reach on each table with each seed and number of labels. The tables are ADBench's;
backdoor, census and speech, which ADGym has too, are left out.

A split is drawn as ADGym does it. With the seed: 3,000 rows where a table has more; of these 30 %
to test, stratified; some of the other anomalies, which are labelled. All other rows are
unlabelled, and hidden anomalies among them, up to 40 %. Columns are not scaled.
"""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from sklearn.model_selection import train_test_split

from fewlier.errors import UserError
from fewlier.table.labels import ANOMALY, UNLABELLED
from fewlier_bench.data.download import FOLDER_VARIABLE
from fewlier_bench.data.few_labels import FewLabelSplit, Floats, Labels, Rows
from fewlier_bench.data.store import hash_table, named_folder

ADBENCH = "https://github.com/Minqi824/ADBench, folder adbench/datasets/Classical"
LABELS = (5, 10, 20)  # numbers of labelled anomalies
SEEDS = (1, 2, 3)
MAX_ROWS = 3000
TEST_SHARE = 0.3


@final
@dataclass(frozen=True)
class AdgymTable:
    """A table of the benchmark: its file, its size, and the hash of the rows that any seed draws.

    `is_dev` says that fewlier's settings were chosen on it, among others.
    """

    name: str
    file: str
    n_rows: int
    n_columns: int
    sha256: str
    is_dev: bool

    def load(self, folder: Path) -> tuple[Floats, Labels]:
        """Return values and labels of the rows that any seed draws, in the order of the table.

        The file may have these rows or all.
        """
        X, y = _read(folder / self.file)
        if len(X) == self.n_rows:
            drawn = drawn_rows(self.n_rows)
            X, y = X[drawn], y[drawn]
        found = hash_table(X, y)
        if found != self.sha256:
            raise UserError(
                f"{folder / self.file} must have the values and labels of ADBench's {self.name}, "
                f"SHA-256 {self.sha256} of the drawn rows; got {found}. Get it from {ADBENCH}."
            )
        return X, y

    def draw(self, y: Labels, n_labels: int, seed: int) -> FewLabelSplit:
        """Draw a split of the loaded rows, of which y has the labels."""
        # ADGym draws from numpy's global generator, of which this is a private copy.
        rng = np.random.RandomState(seed)
        rows = np.searchsorted(drawn_rows(self.n_rows), _draw(self.n_rows, rng))
        given, test = train_test_split(
            rows, test_size=TEST_SHARE, stratify=y[rows], random_state=rng
        )
        labels = np.full(len(given), UNLABELLED, dtype=np.int8)
        labels[rng.choice(np.flatnonzero(y[given] == 1), n_labels, replace=False)] = ANOMALY
        return FewLabelSplit(seed, given, labels, test)


def drawn_rows(n_rows: int) -> Rows:
    """Return the rows of a table that any seed draws, sorted."""
    generators = [np.random.RandomState(seed) for seed in SEEDS]
    return np.unique(np.concatenate([_draw(n_rows, rng) for rng in generators]))


def _draw(n_rows: int, rng: np.random.RandomState) -> Rows:
    """Draw the rows of a split, or take all; the generator goes on to be used."""
    if n_rows <= MAX_ROWS:
        return np.arange(n_rows)
    return rng.choice(n_rows, MAX_ROWS, replace=False)


def find_folder(tables: Sequence[AdgymTable]) -> Path:
    """Return the folder that the environment names, which must have these tables; check them."""
    folder = named_folder()
    missing = [t.file for t in tables if folder is None or not (folder / t.file).is_file()]
    if folder is None or missing:
        raise UserError(
            f"${FOLDER_VARIABLE} must name a folder with ADGym's tables; got "
            f"{folder or 'none'}, without {', '.join(missing)}. Get them from {ADBENCH}, or "
            "name other --tables."
        )
    for table in tables:
        table.load(folder)
    return folder


def _read(path: Path) -> tuple[Floats, Labels]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return archive["X"].astype(np.float64), archive["y"].astype(np.int8)
    except (OSError, LookupError, ValueError, zipfile.BadZipFile) as error:
        raise UserError(
            f"{path} must be an .npz file with X and y; got: {error}. Get it from {ADBENCH}."
        ) from None


# File, rows, columns, hash of the rows that any seed draws.
_TABLES = (
    ("1_ALOI", 49534, 27, "bbaa0e7a92b5884ce2b725cdacf83bfa20dbe3592008593d29e442dcfb2cb803"),
    ("2_annthyroid", 7200, 6, "2416da85b48fb66d95e5f6b7c04e64178e3e32ea867562213979ec25d2b1175d"),
    ("5_campaign", 41188, 62, "4d34ee170b05965855aa5993ebe74f0dcfd45f7e345a75a55978f3f791404dbb"),
    ("6_cardio", 1831, 21, "ab754d7c001c769842c54c5250cf3c7df7b210d32fb77f48703b480d4e116f8b"),
    (
        "7_Cardiotocography",
        2114,
        21,
        "7777f81269187e1d045ee1e3375f0dfbe0353f0b46097798c3d3f6ce7a075d34",
    ),
    ("8_celeba", 202599, 39, "d8a19e8bbe8a2945523dbe970cfc2fe7cbe49d0811ffa7af8bf97ffe5d470214"),
    ("11_donors", 619326, 10, "924916f613ef93471293a38f0f9eae8a76d16f371416cd0e718e5df9b535aed7"),
    ("12_fault", 1941, 27, "a91e9a714a748f34117b78a6b7ed14e9b275d5d5e28fe7f08cd4eae403b533c7"),
    (
        "17_InternetAds",
        1966,
        1555,
        "cdfe549c9d0fc5ea1cbaafbaac493776924969b19431b0db980528386bfcbf84",
    ),
    ("19_landsat", 6435, 36, "3a3e28a9be4e1e6538f295191344c3f9298963fbfef9eb1b1e9b551e00c16e6f"),
    ("20_letter", 1600, 32, "73f133ac0fcf60aa35ae7bf22afae1d99b4a735b2ed8410a8ca375072ceddcfc"),
    (
        "22_magic.gamma",
        19020,
        10,
        "6f0f8ae3a2e05a513f53a272783216ab73e8d56db6457b618fce94c6d54ef0d1",
    ),
    (
        "23_mammography",
        11183,
        6,
        "b8105f3965d2bda4b6e95f162511027499729bad3064c62189de9c787e16d337",
    ),
    ("24_mnist", 7603, 100, "497e23c08a9447ce2e0003895167870b34ba2a6fbca5d35de394f234793215a1"),
    ("25_musk", 3062, 166, "1aea37e63dbaf0b5051171fcdbe1d6ed0f732805cefc99d465b5e949c4e614aa"),
    ("26_optdigits", 5216, 64, "ec5798f3292a93c59c77a89a58e5bdde1ee36df9cf1b5280924cd69df75b2df1"),
    ("27_PageBlocks", 5393, 10, "dacbfdaca0a82c6faed5730ede70999d6a4a7c1468a9a3b05f7e4078eafbc1c1"),
    ("28_pendigits", 6870, 16, "c651f38bdc404c3b77b36e6953c583bfb200cc0d7554d600ad1330e847d85995"),
    ("30_satellite", 6435, 36, "58f511446b725ab5efdb2169faab99688e07d28ecfc0407fd4b792244409327f"),
    ("31_satimage-2", 5803, 36, "a5fdefa21350a443c2e1a30b3b21ec4efcf3765eaa18c9042ebd96b8b9d18cf5"),
    ("32_shuttle", 49097, 9, "ba9006019f50c1efc7e7a7136db0d17629c82692478d838e0f3710b77174c79d"),
    ("33_skin", 245057, 3, "052013493185e3bf426ac3f64153fb3f2b3ba8e982fdd6f41e6d3ce89c401cf7"),
    ("35_SpamBase", 4207, 57, "bc0099dc7502e1cb9e38e5d0af0761f91086b95691b3a094e6f476dd0c677f22"),
    ("38_thyroid", 3772, 6, "5e49c4b6437bc314184ddbe8db8ee6594d04d0bda0c6a0a55b5a8a7bdd7c08d1"),
    ("40_vowels", 1456, 12, "3f4cb8b1abdf73c5256083d498696ef4e3d445b39fca2ad9cad3d3754a8b1940"),
    ("41_Waveform", 3443, 21, "404a5af409f617185a98a9a9d01af0a95fa666581d35a20924158d135b1829fc"),
    ("44_Wilt", 4819, 5, "a3c47a6f315a667e3537948fd43f434c77f5dab84472b0cd582e73547ef25f64"),
    ("47_yeast", 1484, 8, "bfd5ff9cc44848c22d79e5f053b5b9d29c354342f42ae591dd01e24c3bc8d6ac"),
)
# Eight of the twelve tables that fewlier's settings were chosen on.
_DEV = ("campaign", "fault", "landsat", "letter", "mammography", "musk", "satellite", "satimage-2")


def _table(stem: str, n_rows: int, n_columns: int, sha256: str) -> AdgymTable:
    name = stem.partition("_")[2]
    return AdgymTable(name, f"{stem}.npz", n_rows, n_columns, sha256, name in _DEV)


ADGYM = {table.name: table for table in (_table(*row) for row in _TABLES)}
