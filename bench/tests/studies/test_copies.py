"""A study as a command: it computes what is missing, and shows it."""

import csv


def test_a_study_computes_each_line_once_and_shows_their_means(bench, tmp_path):
    path = tmp_path / "copies.csv"
    cell = ("--tables", "few", "--rows", 60, "--labels", 0, "--selections", "best", "--seeds", 1)

    def lines(*copies):
        done = bench("copies", "run", "--out", path, *cell, "--copies", *copies)
        assert done.code == 0, done.err
        return path.read_text("utf-8").splitlines()

    first = lines(1)
    assert lines(1, 2)[: len(first)] == first
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    assert [row["copies"] for row in rows] == ["1", "2"]
    assert all(0 <= float(row["found"]) <= 1 for row in rows)
    shown = bench("copies", "show", path).out.decode()
    assert shown.count("| few | 60 |") == 2
