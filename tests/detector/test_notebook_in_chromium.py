"""What a notebook shows, in a real browser. In CI these tests are never skipped."""

import json

import pytest
from contrasts import CONTRASTS
from factories import FEATURES, payments, small, visits
from words import BROKEN, NAMES, WIDTHS, wordy

from fewlier import Session
from fewlier_bench.studies.browser import PHONE, Screen, resize

pytestmark = pytest.mark.slow

# The colours of JupyterLab's themes; a notebook tells no output of them but by inheritance.
PAGE = """<!DOCTYPE html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>notebook</title><style>
:root {{ color-scheme: light dark; }}
body {{ margin: 1rem; font: 14px/1.5 system-ui, sans-serif; background: #fff; color: rgb(0 0 0 / 87%); }}
@media (prefers-color-scheme: dark) {{ body {{ background: #111; color: rgb(255 255 255 / 87%); }} }}
</style>{}</html>
"""  # noqa: E501 - a page
OURS = ("fitted", "summary", "explanation", "drift", "session", "progress")


@pytest.fixture(scope="module")
def shown():
    """Return what a notebook shows, by name."""
    table, fresh = payments(400), visits(n=40)
    detector = small(max_epochs=2).fit(table[FEATURES], table["fraud"])
    rows = payments(300, seed=1)[FEATURES]
    rows.index = [f"payment {number}" for number in range(300)]
    with Session(fresh, fit_every=None) as session:
        for row, answer in enumerate([1, 0, None, 0, 1]):
            session.answer(row, answer, kind="stolen card" if answer else None)
        things = {
            "unfitted": small(),
            "fitted": detector,
            "summary": detector.summary_,
            "explanation": detector.explain(rows),
            "drift": detector.drift(rows.assign(amount=rows["amount"] * 3)),
            "session": session,
            "progress": session.progress,
        }
        return {name: thing._repr_html_() for name, thing in things.items()}


@pytest.fixture(scope="module")
def address(shown, tmp_path_factory):
    path = tmp_path_factory.mktemp("notebook") / "notebook.html"
    parts = (f'<section id="{name}">\n{html}\n</section>' for name, html in shown.items())
    path.write_text(PAGE.format("\n".join(parts)), "utf-8")
    return path.as_uri()


@pytest.fixture
def opened(chromium, address):
    """Return a function that opens the page on a screen, with all that is folded."""
    for log in ("browser", "performance"):
        chromium.get_log(log)  # what others have left

    def open_page(screen=Screen()):  # noqa: B008 - it is frozen
        resize(chromium, screen)
        chromium.get(address)
        chromium.execute_script(
            "for (const part of document.querySelectorAll('details')) part.open = true"
        )
        return chromium

    return open_page


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(theme, opened):
    contrasts = opened(Screen(theme=theme)).execute_script(CONTRASTS, ".fewlier-html")
    assert len(contrasts) > 100
    assert [(round(ratio, 2), words) for ratio, words in contrasts if ratio < 4.5] == []


def test_it_opens_without_a_complaint_and_asks_nobody_for_anything(opened, address):
    page = opened()
    assert page.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"].endswith("WillBeSent")]
    assert [url for url in asked if not url.startswith("data:")] == [address]


@pytest.mark.parametrize("screen", [Screen(), PHONE])
def test_nothing_is_wider_than_the_page(screen, opened):
    page = opened(screen)
    widths = page.execute_script(
        "return arguments[0].map(id => {"
        "  const {left, right} = document.querySelector(`#${id} > *`).getBoundingClientRect();"
        "  return [id, left >= 0 && right <= innerWidth]; })",
        OURS,
    )
    assert [name for name, fits in widths if not fits] == []


def test_tables_need_no_scrolling_on_a_desk(opened):
    hidden = opened().execute_script(
        "return [...document.querySelectorAll('.fewlier-html')]"
        ".filter(e => e.scrollWidth > e.clientWidth).map(e => e.parentElement.id)"
    )
    assert hidden == []


def test_short_cells_stay_on_one_line_on_a_phone(opened):
    heights = opened(PHONE).execute_script(
        "return [...document.querySelectorAll('.fewlier-html :is(td.short, td.number)')]"
        ".map(cell => { const range = document.createRange(); range.selectNodeContents(cell);"
        "  return [range.getBoundingClientRect().height, cell.textContent]; })"
    )
    assert len(heights) > 50
    assert [text for height, text in heights if height > 25] == []


def test_bars_begin_at_the_same_place(opened):
    bars = opened().execute_script(
        "return [...document.querySelectorAll('#explanation .bar')]"
        ".map(bar => bar.getBoundingClientRect()).map(box => [box.left, box.width, box.height])"
    )
    assert len(bars) > 10
    starts, widths, heights = zip(*bars, strict=True)
    assert max(starts) - min(starts) < 1
    assert max(widths) > 50
    assert min(heights) > 5


@pytest.mark.parametrize("width", WIDTHS)
def test_an_explanation_has_the_room_for_long_names_and_numbers(width, chromium, tmp_path):
    rows = wordy(150)
    table = rows.drop(columns=[NAMES["id"], "fraud"])
    html = small(max_epochs=2).fit(table, rows["fraud"]).explain(table)._repr_html_()
    (tmp_path / "wordy.html").write_text(PAGE.format(html), "utf-8")
    resize(chromium, Screen(width, 900, is_mobile=width < 500))
    chromium.get((tmp_path / "wordy.html").as_uri())
    assert chromium.execute_script(BROKEN, ".fewlier-html") == []
