"""`fewlier demo`."""

from processes import plain


def test_the_demo_writes_its_tables_for_the_other_commands(fewlier, tmp_path):
    (tmp_path / "demo").mkdir()
    done = fewlier("demo", "--tables", tmp_path / "demo")
    assert done.code == 0, done.err
    assert "label column is 'malignant'" in plain(done.out.decode())
    for name in ("train.csv", "test.csv"):
        assert (tmp_path / "demo" / name).read_text().splitlines()[0].endswith("malignant")
