"""What users rely on changes only with a line in CHANGELOG.md; tools/surface.py lists it."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOL = runpy.run_path(str(ROOT / "tools" / "surface.py"))
LISTED = """Public surface of fewlier 1.0.0
$ fewlier fit --label
$ fewlier score --label
exit code = 2
fewlier.Session(path) = None
fewlier.Session.next()
"""
RELEASED = (
    "## 1.0.0 - 2030-01-01\n\n- `Session` with `path` and `next`, `fit --label`, exit code 2.\n"
)


def untold(lines, since):
    changelog = f"# Changelog\n\n## Unreleased\n\n{since}\n\n{RELEASED}"
    return TOOL["untold"](LISTED, lines, changelog)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fewlier.FewlierWarning")
def test_the_changelog_tells_of_every_change_since_the_last_release():
    listed = TOOL["LIST"].read_text("utf-8")
    changes = TOOL["untold"](listed, TOOL["surface"](), TOOL["CHANGELOG"].read_text("utf-8"))
    advice = "CHANGELOG.md must name each of these above the last release, in backticks, with what"
    advice += " it belongs to, such as `Session.next`. Before the first release of a version, write"
    advice += " its list: python tools/surface.py --write"
    assert changes == [], advice


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("fewlier.Session(path) = None", "fewlier.Session(path)", "`path` must be given"),
        ("fewlier.Session.next()", None, "`Session.next()` is gone"),
        (None, "fewlier.Session.undo()", "New: `undo`"),
        ("$ fewlier fit --label", None, "`--label` of `fit` is gone"),
        (None, "$ fewlier fit --json: kinds.*", "`fewlier fit --json` counts `kinds`"),
        (None, "fewlier.Drift.next()", "`next` of a `Drift`"),
        (None, "exit code = 3", "exit code 3 is new"),
        (None, "model file = version 2", "A model file has version 2"),
    ],
)
def test_a_change_must_be_told_above_the_release(before, after, told):
    lines = [line for line in LISTED.splitlines()[1:] if line != before]
    lines += [after] if after else []
    changes = [f"+ {after}"] * bool(after) + [f"- {before}"] * bool(before)
    assert untold(lines, "") == changes
    assert untold(lines, f"- Others.\n- {told}.") == []
    assert untold(lines, f"{told}.") == []


@pytest.mark.parametrize(
    ("after", "since"),
    [
        ("fewlier.Session.undo()", "- Now undo is a method of `Session`."),
        ("fewlier.Session.undo()", "- `undo-all`, `undone`."),
        ("fewlier.Drift.next()", "- `next` is new."),
        ("fewlier.Drift.next()", "- `next` is new.\n- `Drift` has words.\n\n`Drift`"),
        ("exit code = 3", "- Another exit code."),
    ],
)
def test_a_word_in_passing_tells_of_nothing(after, since):
    assert untold([*LISTED.splitlines()[1:], after], since) == [f"+ {after}"]


def test_the_page_of_promises_names_what_is_guarded():
    page = (ROOT / "docs" / "PROMISES.md").read_text("utf-8")
    wholes = ("fewlier", "fewlier.report.plots")
    others = {module: names for module, names in TOOL["CALLED"].items() if module not in wholes}
    expected = {f"{module}.{name}" for module, names in others.items() for name in names}
    assert (
        set(re.findall(r"`(fewlier\.[a-z_.]+\.[\w]+)`", page)) - {"fewlier.report.plots.__all__"}
        == expected
    )


def test_what_is_new_as_a_whole_is_told_of_once():
    new = ["fewlier.Drift", "fewlier.Drift.plot()", "fewlier.Drift.plot(ax) = None"]
    lines = [*LISTED.splitlines()[1:], *new]
    assert untold(lines, "") == ["+ fewlier.Drift"]
    assert untold(lines, "- `Drift` is new.") == []


def test_a_release_without_a_section_is_an_error():
    with pytest.raises(ValueError, match="must have a section"):
        TOOL["untold"](LISTED, [], "# Changelog\n")
