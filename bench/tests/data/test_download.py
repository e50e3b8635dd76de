import ast
from pathlib import Path

import numpy as np
import pytest
from test_layers import imported

import fewlier
import fewlier_bench
from fewlier.errors import UserError
from fewlier_bench.data import get_datasets, load_dataset
from fewlier_bench.data.download import N_RETRIES

PARKINSON = "semantic/Parkinson/Parkinson_withoutdupl_norm_20_v01.arff"
STAMPS = "semantic/Stamps/Stamps_withoutdupl_norm_05_v01.arff"
SHUTTLE = "literature/Shuttle/Shuttle_withoutdupl_norm_v01.arff"
WILT = "semantic/Wilt/Wilt_norm_02_v01.arff"
WILT_DEDUPLICATED = "semantic/Wilt/Wilt_withoutdupl_norm_02_v01.arff"


@pytest.fixture
def parkinson(make_arff, make_archive):
    """An archive with the table, and neighbours of it that must not be taken."""
    folder = "semantic/Parkinson/Parkinson_withoutdupl"
    return make_archive(
        {
            f"{folder}_20_v01.arff": make_arff(60, 22, 12, seed=1),
            f"{folder}_norm_05_v01.arff": make_arff(50, 22, 2, seed=1),
            PARKINSON: make_arff(60, 22, 12, seed=7),
            f"{folder}_norm_20_v02.arff": make_arff(60, 22, 12, seed=1),
        }
    )


def test_a_table_is_downloaded_read_and_checked(site, parkinson):
    site.publish("semantic", parkinson)
    table = load_dataset("parkinson")
    assert (table.name, table.X.shape, int(table.y.sum())) == ("Parkinson", (60, 22), 12)
    assert np.array_equal(table.X, np.random.default_rng(7).random((60, 22)))
    assert table.feature_names[:2] == ("att 0", "att 1")


def test_the_second_time_the_cache_is_used(site, parkinson):
    site.publish("semantic", parkinson)
    first = load_dataset("Parkinson")
    site.close()
    again = load_dataset("Parkinson")
    assert again.sha256 == first.sha256
    assert site.n_requests == 1


def test_an_archive_that_is_there_is_not_downloaded_again(site, make_arff, make_archive):
    tables = {PARKINSON: make_arff(60, 22, 12), STAMPS: make_arff(325, 9, 16)}
    site.publish("semantic", make_archive(tables))
    load_dataset("Parkinson")
    site.close()
    assert load_dataset("Stamps").X.shape == (325, 9)


def test_paths_in_an_archive_may_begin_with_a_dot(site, make_arff, make_archive):
    site.publish("semantic", make_archive({f"./{PARKINSON}": make_arff(60, 22, 12)}))
    assert load_dataset("Parkinson").X.shape == (60, 22)


def test_several_tables_take_one_download_per_archive(site, make_arff, make_archive):
    semantic = {
        PARKINSON: make_arff(60, 22, 12),
        WILT: make_arff(4671, 5, 93),
        WILT_DEDUPLICATED: make_arff(4655, 5, 93),
    }
    site.publish("semantic", make_archive(semantic))
    site.publish("literature", make_archive({SHUTTLE: make_arff(1013, 9, 13)}))
    shares = []
    tables = get_datasets(["Wilt", "Parkinson", "Shuttle"], shares.append)
    assert [len(table.X) for table in tables] == [4671, 4655, 60, 1013]
    assert site.n_requests == 2
    assert shares[-1] == 1.0
    assert all(0 <= share <= 1 for share in shares)


def test_a_download_that_breaks_off_is_tried_again(site, parkinson):
    site.publish("semantic", parkinson)
    site.n_broken = 1
    assert load_dataset("Parkinson").X.shape == (60, 22)
    assert site.n_requests == 2


def test_a_download_that_always_breaks_off_is_an_error(site, parkinson, cache):
    site.publish("semantic", parkinson)
    site.n_broken = 100
    with pytest.raises(UserError, match=r"127\.0\.0\.1.* must be reachable .* Try again later"):
        load_dataset("Parkinson")
    assert site.n_requests == 1 + N_RETRIES
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_a_wrong_checksum_is_an_error_and_keeps_nothing(site, parkinson, cache):
    site.publish("semantic", parkinson, sha256="0" * 64)
    with pytest.raises(UserError, match=r"must have the SHA-256 checksum 000.* nothing was kept"):
        load_dataset("Parkinson")
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_a_damaged_archive_in_the_cache_is_downloaded_again(site, parkinson, cache):
    site.publish("semantic", parkinson)
    (cache / "archives").mkdir(parents=True)
    (cache / "archives" / "semantic.tar.gz").write_bytes(parkinson[:100])
    assert load_dataset("Parkinson").X.shape == (60, 22)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda _: b"<html>moved</html>",
        lambda content: content[:500] + bytes(200) + content[700:],
    ],
    ids=["truncated", "not an archive", "corrupt"],
)
def test_an_archive_that_is_damaged_although_its_checksum_fits_is_an_error(site, parkinson, damage):
    site.publish("semantic", damage(parkinson))
    with pytest.raises(UserError, match=r"semantic\.tar\.gz.*(whole tar\.gz|line \d+)"):
        load_dataset("Parkinson")


def test_a_missing_archive_is_an_error(site, parkinson):
    site.publish("semantic", parkinson)
    site.files.clear()
    with pytest.raises(UserError, match="404"):
        load_dataset("Parkinson")


def test_a_site_that_is_down_is_an_error(site, parkinson):
    site.publish("semantic", parkinson)
    site.close()
    with pytest.raises(UserError, match=r"must be reachable.*\$FEWLIER_DATA"):
        load_dataset("Parkinson")


def test_a_table_with_other_counts_is_an_error_that_names_them(site, make_arff, make_archive):
    site.publish("semantic", make_archive({PARKINSON: make_arff(61, 22, 11)}))
    message = (
        r"must hold .* with 60 rows, 22 columns and 12 anomalies; got semantic/Parkinson/.*arff "
        r"with 61 rows instead of 60, 11 anomalies instead of 12\."
    )
    with pytest.raises(UserError, match=message):
        load_dataset("Parkinson")


def test_a_table_that_is_not_there_is_an_error_that_names_what_is(site, make_arff, make_archive):
    other = PARKINSON.replace("20_v01", "20_v02")
    files = {other: make_arff(60, 22, 12), STAMPS: make_arff(325, 9, 16)}
    site.publish("semantic", make_archive(files))
    with pytest.raises(UserError, match=r"got semantic/Parkinson/\w+_v02\.arff\. The") as error:
        load_dataset("Parkinson")
    assert "Stamps" not in str(error.value)


@pytest.mark.slow
def test_of_two_files_that_may_be_meant_the_counts_decide(site, make_arff, make_archive):
    folder = "semantic/InternetAds/InternetAds"
    files = {
        f"{folder}_norm_10_v01.arff": make_arff(3, 1555, 1),
        f"{folder}_withoutdupl_norm_10_v01.arff": make_arff(1775, 1555, 177, decimals=0),
    }
    site.publish("semantic", make_archive(files))
    assert load_dataset("InternetAds").X.shape == (1775, 1555)


def test_a_cache_that_cannot_be_written_is_an_error(site, parkinson, cache):
    site.publish("semantic", parkinson)
    cache.mkdir()
    (cache / "tables").write_text("in the way")
    with pytest.raises(UserError, match=r"parkinson\.npz must be writable"):
        load_dataset("Parkinson")


@pytest.mark.parametrize("package", [fewlier, fewlier_bench], ids=lambda package: package.__name__)
def test_nothing_else_opens_a_connection(package):
    source = Path(package.__file__).parent
    may = {
        Path("data", "download.py"): {"pooch"},
        Path("labelling", "page", "app.py"): {"socket"},
        Path("service", "app.py"): {"http"},  # numbers of its answers
        Path("service", "server.py"): {"socket"},
        Path("studies", "serve.py"): {"http"},  # puts load on a service of this machine
    }
    networked = {"pooch", "requests", "urllib", "urllib3", "http", "socket", "ftplib"}
    for path in source.rglob("*.py"):
        names = {name.partition(".")[0] for name in imported(ast.parse(path.read_text("utf-8")))}
        assert names & networked <= may.get(path.relative_to(source), set()), path
