"""Every page in real Chromium: no errors, no other host, legible, reachable by keyboard, whole on a phone."""
import json
import os
import re
import shutil

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import ROOT
from playwright.sync_api import sync_playwright
from press import registry
from press.site import PAGE_BYTES

pytestmark = pytest.mark.xdist_group("book")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]
CHAPTERS = [paper.notebook.with_suffix(".html").as_posix() for paper in registry.load(ROOT).papers]


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.fail("These tests need Chromium: on Debian and Ubuntu, `apt-get install chromium`.")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)


@pytest.fixture(scope="module")
def pages(printed) -> list[str]:
    found = sorted(path.relative_to(printed).as_posix() for path in printed.rglob("*.html")
                   if "_static" not in path.parts and path.name not in ("genindex.html", "search.html", "index.html"))
    assert len(found) >= 10
    return found


class Page:
    """A page of the book in a browser, with everything it complains about and every address it asks for."""

    def __init__(self, browser, printed, name, theme="light", width=1280, **options):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, **options)
        self.context.add_init_script(f"localStorage.setItem('mode', '{theme}'); localStorage.setItem('theme', '{theme}')")
        self.page = self.context.new_page()
        self.complaints, self.asked = [], []
        self.page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto((printed / name).as_uri())
        self.page.wait_for_load_state("networkidle")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


def test_every_page_in_both_themes(browser, printed, pages):
    shots = ROOT / "_build/screenshots"
    shutil.rmtree(shots, ignore_errors=True)
    problems = []
    for name in pages:
        for theme in ("light", "dark"):
            with Page(browser, printed, name, theme) as seen:
                problems += [f"{name}, {theme}: {complaint}" for complaint in seen.complaints]
                problems += [f"{name} asks {url[:120]}" for url in seen.asked if not url.startswith(("file:", "data:", "blob:"))]
                serious = [f"{name}, {theme}: {violation['id']}: {violation['nodes'][0]['html'][:200]}"
                           for violation in Axe().run(seen.page).response["violations"]
                           if violation["impact"] in ("serious", "critical")]
                problems += serious
                shots.mkdir(parents=True, exist_ok=True)
                seen.page.screenshot(path=shots / f"{name.replace('/', '-')[:-5]}-{theme}.png", full_page=True)
        assert (printed / name).stat().st_size <= PAGE_BYTES
    assert not problems, "\n".join(problems)


def test_nothing_scrolls_sideways_on_a_phone(browser, printed, pages):
    wide = []
    for name in pages:
        with Page(browser, printed, name, width=380) as seen:
            size = seen.page.evaluate("document.documentElement.scrollWidth")
            if size > 380:
                wide.append((name, size))
    assert wide == []


def test_mathematics_is_set_without_a_network(browser, printed):
    with Page(browser, printed, CHAPTERS[0]) as seen:
        seen.page.wait_for_selector("mjx-container", timeout=10_000)


@pytest.mark.parametrize("name", CHAPTERS)
def test_sliders_answer_to_mouse_and_keyboard(browser, printed, name):
    with Page(browser, printed, name) as seen:
        figures = seen.page.locator("figure.pb-explore")
        assert figures.count() >= 1
        for figure in figures.all():
            stage, slider = figure.locator(".pb-stage"), figure.locator("input[type=range]").first
            slider.wait_for(state="visible", timeout=10_000)
            assert slider.evaluate("e => e.labels[0].innerText.trim().length > 0"), "the slider has a name"
            before, spoken = stage.inner_html(), slider.get_attribute("aria-valuetext")
            slider.focus()
            seen.page.keyboard.press("ArrowRight")
            assert stage.inner_html() != before and slider.get_attribute("aria-valuetext") != spoken
            seen.page.keyboard.press("ArrowLeft")
            assert stage.inner_html() == before, "back where it was"
            box = slider.bounding_box()
            seen.page.mouse.click(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2)
            assert stage.inner_html() != before
            assert int(slider.input_value()) == int(slider.get_attribute("max"))
            play = figure.get_by_role("button")
            play.click()
            seen.page.wait_for_timeout(1000)
            assert "Pause" in play.inner_text() and slider.input_value() != slider.get_attribute("max")
            play.click()
            assert "Play" in play.inner_text()


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_reads_without_javascript(browser, printed, name):
    with Page(browser, printed, name, java_script_enabled=False) as seen:
        assert seen.page.locator("figure.pb-explore .pb-stage svg").first.is_visible()
        assert not seen.page.locator(".pb-controls").first.is_visible(), "no sliders that cannot move"
        assert seen.page.locator("table.pb-claims tbody tr").count() >= 3


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_shows_what_it_should_and_no_more(printed, name):
    text = (printed / name).read_text()
    assert "git+https" not in text and "injected-parameters" not in text, "the first cell stays behind the scenes"
    assert "it/s]" not in text and "Training:" not in text, "no progress bars"
    assert "colab.research.google.com/github" in text and name.replace(".html", ".ipynb") in text
    assert len(re.findall(r'<svg role="img" aria-label="[^"]{20,}"', text)) >= 5, "figures have alt text"


def test_figures_take_the_ink_of_the_theme(browser, printed):
    inks = set()
    for theme in ("light", "dark"):
        with Page(browser, printed, CHAPTERS[0], theme) as seen:
            inks.add(seen.page.locator("figure.pb-figure svg").first.evaluate("e => getComputedStyle(e).color"))
    assert len(inks) == 2


def test_the_scoreboard_filters_and_sorts(browser, printed):
    claims = json.loads((printed / "_static/scoreboard.json").read_text())["claims"]
    with Page(browser, printed, "book/scoreboard.html") as seen:
        rows = seen.page.locator("#pb-board tbody tr:visible")
        assert rows.count() == len(claims)
        verdict = claims[0]["verdict"]
        seen.page.get_by_label("Verdict").select_option(verdict)
        assert rows.count() == sum(claim["verdict"] == verdict for claim in claims)
        assert seen.page.locator(".pb-count").inner_text() == f"{rows.count()} of {len(claims)} shown"
        seen.page.get_by_label("Verdict").select_option("")
        seen.page.get_by_label("Text").fill("no such words anywhere")
        assert rows.count() == 0
        seen.page.get_by_label("Text").fill("")
        seen.page.get_by_role("button", name="Measured").click()
        values = [float(v) for v in rows.evaluate_all("all => all.map(r => r.cells[3].dataset.sort)") if v]
        assert values == sorted(values) and len(values) > 2
        seen.page.keyboard.press("Enter")
        values = [float(v) for v in rows.evaluate_all("all => all.map(r => r.cells[3].dataset.sort)") if v]
        assert values == sorted(values, reverse=True), "the head is a button, so the keyboard sorts too"


def test_the_library_filters_and_leads_to_the_chapters(browser, printed):
    papers = registry.load(ROOT).papers
    with Page(browser, printed, "book/library.html") as seen:
        cards = seen.page.locator(".pb-card:visible")
        assert cards.count() == len(papers)
        assert seen.page.locator(".pb-thumb img").count() == len(papers)
        assert seen.page.locator(".pb-thumb img").first.evaluate("e => e.complete && e.naturalWidth > 0")
        seen.page.get_by_label("Part").select_option(papers[0].part)
        assert cards.count() == sum(paper.part == papers[0].part for paper in papers)
        seen.page.get_by_label("Part").select_option("")
        seen.page.get_by_label("Text").fill(papers[-1].title[:25].upper())
        assert cards.count() == 1
        cards.first.get_by_role("link").click()
        seen.page.wait_for_load_state()
        assert papers[-1].slug in seen.page.url


def test_every_link_inside_the_book_arrives(printed, pages):
    dead = []
    for name in pages:
        for target in re.findall(r'href="([^"#:?]+)(?:#[^"]*)?"', (printed / name).read_text()):
            if not os.path.exists(os.path.join(printed, os.path.dirname(name), target)):
                dead.append((name, target))
    assert dead == []
