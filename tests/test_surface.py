"""What users rely on changes only with a line in CHANGELOG.md; tools/surface.py lists it."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOL = runpy.run_path(str(ROOT / "tools" / "surface.py"))
LISTED = """Public surface of fewlier 1.0.0
$ fewlier fit --label
exit code = 2
fewlier.Session(path) = None
fewlier.Session.next()
"""
RELEASED = "## [1.0.0] - 2030-01-01\n\n- `path`, `next`, `--label`, `undo`, exit code 2.\n"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fewlier.FewlierWarning")
def test_the_changelog_tells_of_every_change_since_the_last_release():
    listed = TOOL["LIST"].read_text("utf-8")
    untold = TOOL["untold"](listed, TOOL["surface"](), TOOL["CHANGELOG"].read_text("utf-8"))
    advice = "CHANGELOG.md must name each of these under [Unreleased]. Before the first release of"
    advice += " a version, write its list: python tools/surface.py --write"
    assert untold == [], advice


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ("fewlier.Session(path) = None", "fewlier.Session(path)", "path"),
        ("fewlier.Session.next()", None, "next"),
        (None, "fewlier.Session.undo()", "undo"),
        ("$ fewlier fit --label", None, "--label"),
        (None, "$ fewlier fit --json: kinds.*", "kinds"),
        (None, "exit code = 3", "exit code"),
    ],
)
def test_a_change_must_be_told_above_the_release(before, after, name):
    lines = [line for line in LISTED.splitlines()[1:] if line != before]
    lines += [after] if after else []
    changes = [f"+ {after}"] * bool(after) + [f"- {before}"] * bool(before)
    for since, untold in [
        ("", changes),
        (f"- `{name}s` and `{name}-all` are others.\n", changes),
        (f"- `{name}` differs.\n", []),
    ]:
        changelog = f"# Changelog\n\n## [Unreleased]\n\n{since}\n{RELEASED}"
        assert TOOL["untold"](LISTED, lines, changelog) == untold


def test_a_release_without_a_section_is_an_error():
    with pytest.raises(ValueError, match="must have a section"):
        TOOL["untold"](LISTED, [], "# Changelog\n")
