"""What docs/OPERATE.md shows of a graph."""

from chapters import check


def test_the_page_shows_what_is_printed(tmp_path):
    check("An ONNX file", tmp_path)
