"""The page in a real browser. In CI these tests are never skipped: `.ci/run` brings Chromium."""

import json
import re
from urllib.parse import quote

import numpy as np
import pytest
from contrasts import CONTRASTS
from factories import small
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from words import BROKEN, NAMES, WIDTHS, wordy

from fewlier.report.facts import tabulate_thresholds
from fewlier.report.page import _short, render
from fewlier_bench.studies.browser import PHONE, Screen, resize

pytestmark = pytest.mark.slow

DESKTOP = Screen()


@pytest.fixture(scope="module")
def pages(tmp_path_factory, facts, hostile_facts):
    folder = tmp_path_factory.mktemp("pages")
    for name, found in (("plain", facts), ("hostile", hostile_facts)):
        (folder / f"{name}.html").write_text(render(found), "utf-8")
    return folder


@pytest.fixture
def opened(chromium, pages):
    """Return a function that opens a page, in a size, theme and medium."""
    for log in ("browser", "performance"):
        chromium.get_log(log)  # what others have left

    def open_page(name="plain", screen=DESKTOP):
        resize(chromium, screen)
        chromium.get(f"file://{quote(str(pages / name))}.html")
        return chromium

    return open_page


def element(page, css):
    return page.find_element("css selector", css)


def visible_rows(page):
    return page.execute_script(
        "return [...document.querySelectorAll('#table tbody tr')]"
        ".filter(row => !row.hidden).map(row => ({...row.dataset}))"
    )


def text(page, css):
    return element(page, css).text


def set_slider(page, value):
    page.execute_script(
        "const s = document.getElementById('slider'); s.value = arguments[0];"
        "s.dispatchEvent(new Event('input'))",
        value,
    )


@pytest.mark.parametrize("name", ["plain", "hostile"])
def test_it_opens_without_a_complaint_and_asks_nobody_for_anything(name, opened):
    page = opened(name)
    assert page.execute_script("return document.readyState") == "complete"
    assert page.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"].endswith("WillBeSent")]
    assert [url.rpartition("/")[2] for url in asked] == [f"{name}.html"]


def test_hostile_texts_are_shown_as_texts_and_never_run(opened, hostile_texts):
    page = opened("hostile")
    shown = page.execute_script("return document.body.textContent")
    assert page.execute_script("return window.hacked") is None
    for hostile in [*hostile_texts, "<b>category</b>", "id <i>"]:
        assert _short(hostile) in shown, hostile
    counts = "return ['script', 'img', 'b', 'i', 'u'].map(n => document.querySelectorAll(n).length)"
    assert page.execute_script(counts) == [2, 0, 0, 0, 0]
    assert hostile_texts[1] in page.title
    element(page, "#filter").send_keys("</script>")
    rows = page.find_elements("css selector", "#table tbody tr:not([hidden])")
    assert rows
    assert all("</script>" in row.text for row in rows)
    assert page.execute_script("return window.hacked") is None


def test_the_slider_changes_the_counts(opened, facts):
    page = opened()
    found = tabulate_thresholds(facts)
    own = found["above"][found["start"]]
    assert text(page, "#above") == f"{own:,}"
    element(page, "#slider").send_keys(Keys.ARROW_RIGHT)
    assert int(element(page, "#slider").get_property("value")) == found["start"] + 1
    for step in (0, found["start"] + 1, len(found["thresholds"]) - 1):
        set_slider(page, step)
        threshold = found["thresholds"][step]
        n_above = int((facts.scores > threshold).sum())
        assert text(page, "#above") == f"{n_above:,}"
        assert float(text(page, "#at")) == pytest.approx(threshold, rel=1e-3, abs=1e-3)
        is_above = [row["above"] == "1" for row in visible_rows(page)]
        assert is_above == [float(row["score"]) > threshold for row in visible_rows(page)]
        above = facts.scores > threshold
        recall = above[facts.labels.codes == 1].mean()
        assert text(page, "#recall") == f"{100 * recall:.1f} %"
        among = facts.labels.codes[above & (facts.labels.codes >= 0)]
        precision = f"{100 * among.mean():.1f} %" if len(among) else "–"
        assert text(page, "#precision") == precision
        said = element(page, "#slider").get_attribute("aria-valuetext")
        assert said.endswith(f": {n_above} rows above")
    element(page, "#reset").click()
    assert text(page, "#above") == f"{own:,}"


def test_the_slider_moves_the_line_in_the_figure(opened):
    page = opened()
    where = "return document.getElementById('scores-threshold').getBoundingClientRect().x"
    before = page.execute_script(where)
    set_slider(page, 0)
    assert page.execute_script(where) < before


@pytest.mark.parametrize("key", ["row", "score", "p", "above", "label", "other0"])
def test_sorting_sorts_and_says_so(key, opened):
    page = opened()
    header = element(page, f"th[data-key='{key}']")
    element(page, "#more").click()
    for _ in range(2):
        header.find_element("css selector", "button").send_keys(Keys.ENTER)
        order = header.get_attribute("aria-sort")
        sorted_by = page.find_elements("css selector", "th[aria-sort]")
        assert [th.get_attribute("data-key") for th in sorted_by] == [key]
        values = [row[key] for row in visible_rows(page)]
        if key not in ("label", "other0"):
            values = [float(value) for value in values]
        assert values == sorted(values, reverse=order == "descending")
    assert len(values) == 20


def test_a_filter_keeps_the_rows_that_hold_its_text(opened, facts):
    page = opened()
    element(page, "#filter").send_keys("CITY = Rome")
    rows = page.find_elements("css selector", "#table tbody tr:not([hidden])")
    assert rows
    assert all("city = Rome" in re.sub(r"\s+", " ", row.text) for row in rows)
    shown, found = map(int, re.findall(r"\d+", text(page, "#shown")))
    told = [{reason[:2] for reason, _ in row["reasons"]} for row in facts.rows]
    expected = [
        row for row, cells in zip(facts.rows, told, strict=True) if ("city", "Rome") in cells
    ]
    assert (shown, found) == (min(10, len(expected)), len(expected))
    element(page, "#filter").send_keys(" and nothing else")
    assert text(page, "#shown") == "0 of 0 rows"


def test_rows_are_chosen_by_verdict_and_label(opened):
    page = opened()
    choice = Select(element(page, "#verdict"))
    choice.select_by_value("below")
    assert {row["above"] for row in visible_rows(page)} == {"0"}
    choice.select_by_value("alarm")
    assert {(row["above"], row["label"]) for row in visible_rows(page)} == {("1", "normal")}
    set_slider(page, 10_000)
    assert visible_rows(page) == []
    choice.select_by_value("missed")
    assert {(row["above"], row["label"]) for row in visible_rows(page)} == {("0", "anomaly")}


def test_more_rows_are_shown_when_asked_for(opened, facts):
    page = opened()
    assert len(visible_rows(page)) == 10
    for n in range(20, len(facts.rows) + 1, 10):
        element(page, "#more").click()
        assert len(visible_rows(page)) == n
    assert not element(page, "#more").is_displayed()


def background(page):
    return page.execute_script("return getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_is_that_of_the_system_until_it_is_changed(theme, opened):
    page = opened(screen=Screen(theme=theme))
    first, button = background(page), element(page, "#theme")
    assert (first == "rgb(255, 255, 255)") is (theme == "light")
    assert button.text == ("Dark theme" if theme == "light" else "Light theme")
    button.click()
    assert background(page) != first
    button.click()
    assert background(page) == first


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(theme, opened):
    contrasts = opened(screen=Screen(theme=theme)).execute_script(CONTRASTS)
    assert len(contrasts) > 100
    faint = [(round(ratio, 2), words) for ratio, words in contrasts if ratio < 4.5]
    assert faint == []


def test_controls_have_labels_and_figures_have_words(opened):
    page = opened()
    nameless = page.execute_script(
        "return [...document.querySelectorAll('input, select')].filter(e => !e.labels.length)"
    )
    assert nameless == []
    figures = page.find_elements("css selector", "figure > svg")
    assert len(figures) == 5
    for figure in figures:
        assert figure.get_attribute("role") == "img"
        assert len(figure.get_attribute("aria-label")) > 20
    levels = page.execute_script(
        "return [...document.querySelectorAll('h1, h2, h3')].map(h => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert max(np.diff(levels)) <= 1


def test_everything_is_reached_by_the_keyboard(opened):
    page = opened()
    reached = []
    for _ in range(40):
        page.switch_to.active_element.send_keys(Keys.TAB)
        active = page.switch_to.active_element
        reached.append(active.get_attribute("id") or active.tag_name)
    assert {"theme", "slider", "reset", "filter", "verdict", "more", "summary"} <= set(reached)


@pytest.mark.parametrize("name", ["plain", "hostile"])
@pytest.mark.parametrize("screen", [PHONE, Screen(320, 600), DESKTOP])
def test_no_page_is_wider_than_its_window(name, screen, opened):
    page = opened(name, screen)
    widths = "return [document.documentElement.scrollWidth, innerWidth]"
    scroll, inner = page.execute_script(widths)
    assert (inner, scroll <= inner) == (screen.width, True)


def test_no_figure_is_broken_over_two_lines_on_a_phone(opened):
    broken = """
    const found = [];
    const figures = '.adds, .number, .figures td, .key dd, .reason';
    for (const element of document.querySelectorAll(figures)) {
      const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const node = walker.currentNode;
        // No-break spaces join a number and what belongs to it; a plain space ends it.
        for (const match of node.data.matchAll(/[^ ]*[0-9][^ ]*/g)) {
          const range = document.createRange();
          range.setStart(node, match.index);
          range.setEnd(node, match.index + match[0].length);
          const tops = new Set([...range.getClientRects()].map(box => Math.round(box.top)));
          if (tops.size > 1) found.push(match[0]);
        }
      }
    }
    return found;
    """
    assert opened("plain", PHONE).execute_script(broken) == []


def test_every_reason_has_a_picture_with_its_value(opened, facts):
    page = opened()
    marks = page.execute_script(
        "return [...document.querySelectorAll('.sketch')].map(svg => [svg.querySelector('use')"
        ".getBoundingClientRect().width > 0, svg.querySelectorAll('.mark').length])"
    )
    shown = [reason for row in facts.rows[: len(marks)] for reason, _ in row["reasons"]]
    assert [n for _, n in marks] == [int(reason.value is not None) for reason in shown]
    assert any(is_drawn for is_drawn, _ in marks)


def test_print_is_light_and_without_controls(opened):
    page = opened(screen=Screen(theme="dark", media="print"))
    assert background(page) == "rgb(255, 255, 255)"
    for css in ("#theme", "#slider", "#filter", "#more", "#reset"):
        assert not element(page, css).is_displayed(), css
    assert element(page, "#table").is_displayed()


@pytest.fixture(scope="module")
def wordy_page(facts_of, tmp_path_factory):
    rows = wordy(400)
    detector = small().fit(rows.drop(columns=[NAMES["id"], "fraud"]), rows["fraud"])
    path = tmp_path_factory.mktemp("wordy") / "report.html"
    path.write_text(render(facts_of(detector, rows, "fraud")), "utf-8")
    return path.as_uri()


@pytest.mark.parametrize("width", WIDTHS)
def test_reasons_have_the_room_for_long_names_and_numbers(width, chromium, wordy_page):
    resize(chromium, Screen(width, 900))
    chromium.get(wordy_page)
    assert chromium.execute_script(BROKEN, "#table tbody tr:not([hidden])") == []
    reason = element(chromium, "#table .reason").rect
    assert reason["width"] > 0.55 * width
    # A value far beyond all training adds a number that is as long as it needs.
    cut = """
        const all = [...document.querySelectorAll("#table tbody tr:not([hidden]) .adds")];
        for (const adds of all) adds.textContent = "+123456.7";
        return all.filter(adds => adds.scrollWidth > adds.clientWidth).length;
    """
    assert chromium.execute_script(cut) == 0
