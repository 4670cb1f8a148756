"""The page, driven in headless Chromium; ``make test-page`` installs what it needs.

With OKFOREST_SCREENSHOTS=docs/images, the pictures of docs/image_search.md are written.
"""

import io
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
pytest.importorskip("fastapi", reason="FastAPI is not installed")
if CHROMIUM is None:
    pytest.skip("Chromium is not installed (apt-get install chromium)", allow_module_level=True)
search_images = pytest.importorskip("search_images", reason="examples are in the source tree only")

from okforest.retrieval import SubwindowIndex  # noqa: E402

WIDE, NARROW = {"width": 1200, "height": 820}, {"width": 390, "height": 780}
SHOTS = os.environ.get("OKFOREST_SCREENSHOTS")


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """Return an index of scenes, and their folder."""
    folder = tmp_path_factory.mktemp("scenes")
    search_images.write_scenes(folder / "pictures", n_each=8)
    return SubwindowIndex.build(folder / "index", folder / "pictures"), folder / "pictures"


@pytest.fixture(scope="module")
def browser():
    """Start Chromium."""
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser, scenes, serving):
    """Return a function that opens the page; no script error may happen on it."""
    contexts, errors = [], []

    def start(viewport=WIDE, scheme="light", **settings):
        url = serving(scenes[0], **settings)
        context = browser.new_context(
            viewport=viewport, color_scheme=scheme, has_touch=viewport is NARROW
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on(
            "console",
            lambda message: (
                errors.append(message.text) if "Content Security" in message.text else 0
            ),
        )
        page.on("request", lambda request: errors.append(request.url) if elsewhere(request) else 0)

        def elsewhere(request):
            return not request.url.startswith((url, "blob:", "data:"))

        page.goto(url)
        wait_until(page, "document.getElementById('about').textContent !== ''")
        return page

    yield start
    for context in contexts:
        context.close()
    assert not errors


def wait_until(page, condition):
    """Wait for a condition; the policy of the page forbids Playwright's own way to poll."""
    until = time.monotonic() + 15
    while not page.evaluate(condition):
        assert time.monotonic() < until, f"{condition} has not come true"
        page.wait_for_timeout(20)


def upload(page, path):
    page.set_input_files("#file", path)
    page.wait_for_selector("#hits li")
    return wait_for_hits(page)


def wait_for_hits(page):
    wait_until(
        page,
        "!document.getElementById('hits').classList.contains('waiting') &&"
        "document.getElementById('status').textContent.includes(' ms ')",
    )
    return page.evaluate("[...document.querySelectorAll('#hits .name')].map((name) => name.title)")


def shot(page, name):
    if SHOTS:
        page.wait_for_timeout(500)  # thumbnails are loading
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        picture.quantize(256).save(Path(SHOTS) / f"search_{name}.png", optimize=True)


def test_upload(open_page, scenes):
    """A chosen picture is searched for: hits with scores, labels, thumbnails and the time."""
    page = open_page()
    assert "48 images" in page.text_content("#about")
    names = upload(page, scenes[1] / "harbour" / "harbour-03.png")
    assert names[0] == "harbour/harbour-03.png"
    assert len(names) == 24
    scores = [float(text) for text in page.locator("#hits .score").all_text_contents()]
    assert scores == sorted(scores, reverse=True)
    assert "ms on the server" in page.text_content("#status")
    wait_until(page, "document.querySelector('#hits img').naturalWidth > 0")
    assert "harbour-03.png, 240 × 240" in page.text_content("#caption")
    shot(page, "page")


def test_drop_and_paste(open_page, scenes):
    """A picture can be dropped on the page, or pasted."""
    page = open_page()
    data = list((scenes[1] / "city" / "city-01.png").read_bytes())
    for event in ("drop", "paste"):
        page.evaluate(
            """([event, data]) => {
              const transfer = new DataTransfer();
              transfer.items.add(new File([new Uint8Array(data)], "one.png", {type: "image/png"}));
              const made = event === "drop"
                ? new DragEvent("drop", {dataTransfer: transfer, bubbles: true, cancelable: true})
                : new ClipboardEvent("paste", {clipboardData: transfer, bubbles: true});
              document.body.dispatchEvent(made);
            }""",
            [event, data],
        )
        page.wait_for_selector("#hits li")
        assert wait_for_hits(page)[0] == "city/city-01.png"
        page.evaluate("document.getElementById('hits').replaceChildren()")


def test_click_searches_again(open_page, scenes):
    """A click on a hit searches for it; the browser's back button returns."""
    page = open_page()
    first = upload(page, scenes[1] / "desert" / "desert-02.png")
    page.click("#hits li:nth-child(3) .again")
    wait_until(page, "location.hash.startsWith('#image=')")
    wait_until(page, f"document.querySelector('#hits .name').title === '{first[2]}'")
    assert "image" in page.text_content("#caption")
    page.click("#hits li:nth-child(2) .again")
    wait_until(page, f"document.querySelector('#hits .name').title !== '{first[2]}'")
    page.go_back()
    wait_until(page, f"document.querySelector('#hits .name').title === '{first[2]}'")
    page.go_back()
    wait_until(page, f"document.querySelector('#hits .name').title === '{first[0]}'")
    assert "desert-02.png, 240 × 240" in page.text_content("#caption")
    assert wait_for_hits(page) == first
    page.go_back()
    wait_until(page, "document.getElementById('status').textContent.startsWith('Images of')")
    assert not page.is_visible("#query")


def test_images_to_start_with(open_page):
    """Without a query, images of the index are shown; a click searches for one."""
    page = open_page()
    page.wait_for_selector("#hits li")
    labels = page.locator("#hits .meta").all_text_contents()
    assert (len(labels), len(set(labels))) == (24, 6)
    assert page.locator("#hits .why").count() == 0
    shot(page, "start")
    name = page.get_attribute("#hits li:nth-child(9) .name", "title")
    page.click("#hits li:nth-child(9) .again")
    assert name in wait_for_hits(page)[:3]


def test_crop(open_page, scenes, tmp_path):
    """A part of the query, selected with the mouse, is searched for."""
    parts = [Image.open(scenes[1] / f"{s}/{s}-00.png") for s in ("forest", "night")]
    both = Image.new("RGB", (480, 240))
    both.paste(parts[0], (0, 0))
    both.paste(parts[1], (240, 0))
    both.save(tmp_path / "both.png")
    page = open_page()
    upload(page, tmp_path / "both.png")
    area = page.locator("#frame").bounding_box()
    page.mouse.move(area["x"] + 0.52 * area["width"], area["y"] + 3)
    page.mouse.down()
    page.mouse.move(area["x"] + 0.75 * area["width"], area["y"] + area["height"] / 2)
    page.mouse.move(area["x"] + area["width"] - 2, area["y"] + area["height"] - 3)
    page.mouse.up()
    assert page.is_visible("#box")
    shot(page, "crop")
    page.click("#part")
    wait_until(page, "document.getElementById('caption').textContent.includes('(a part)')")
    labels = page.locator("#hits .text .meta:nth-child(2)").all_text_contents()
    assert labels[:5] == ["night"] * 5
    page.click("#whole")
    wait_until(page, "!document.getElementById('caption').textContent.includes('(a part)')")
    assert not page.is_visible("#box")


def test_overlay(open_page, scenes):
    """Matching subwindows are drawn on the query and on the hit."""
    page = open_page()
    upload(page, scenes[1] / "city" / "city-03.png")
    page.click("#hits li:nth-child(2) .why")
    page.wait_for_selector("#why-query rect")
    boxes = page.locator("#why-query rect").count(), page.locator("#why-hit rect").count()
    assert boxes == (5, 5)
    page.fill("#pairs", "12")
    assert page.locator("#why-hit rect").count() == 12
    assert "% of the score" in page.text_content("#why-status")
    inside = page.evaluate(
        """[...document.querySelectorAll("#why-hit rect")].every((rect) => {
          const [x, y, w, h] = ["x", "y", "width", "height"].map((a) => +rect.getAttribute(a));
          return x >= 0 && y >= 0 && x + w <= 240 && y + h <= 240;
        })"""
    )
    assert inside
    shot(page, "overlay")
    page.keyboard.press("Escape")
    assert not page.is_visible("#why")


def test_filter(open_page, scenes):
    """Only images with the label are shown, with the scores that they had."""
    page = open_page()
    upload(page, scenes[1] / "harbour" / "harbour-03.png")
    page.select_option("#label", "harbour")
    wait_until(page, "document.querySelectorAll('#hits li').length === 8")
    assert {name.split("/")[0] for name in wait_for_hits(page)} == {"harbour"}
    page.select_option("#label", "")
    page.select_option("#top", "12")
    wait_until(page, "document.querySelectorAll('#hits li').length === 12")


def test_keyboard(open_page, scenes):
    """Everything can be done without a mouse."""
    page = open_page()
    upload(page, scenes[1] / "night" / "night-05.png")
    page.focus("#frame")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "Shift+ArrowLeft", "Enter"):
        page.keyboard.press(key)
    wait_until(page, "document.getElementById('caption').textContent.includes('(a part)')")
    page.keyboard.press("Escape")
    wait_until(page, "!document.getElementById('caption').textContent.includes('(a part)')")
    wait_for_hits(page)
    page.focus("#hits li:first-child .why")
    page.keyboard.press("Enter")
    page.wait_for_selector("#why-hit rect")
    page.keyboard.press("Escape")
    page.focus("#hits li:nth-child(2) .again")
    page.keyboard.press("Enter")
    wait_until(page, "location.hash.startsWith('#image=')")
    seen = set()
    page.keyboard.press("Tab")
    for _ in range(12):
        seen.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
        page.keyboard.press("Tab")
    assert {"again", "why"} <= seen


def test_pictures_that_were_sent(open_page, scenes, tmp_path):
    """Both pictures are shown, and why there are no boxes on them."""
    index, folder = scenes
    with Image.open(folder / "city" / "city-03.png") as picture:
        index.add([np.asarray(picture)], names=["sent.png"])
    try:
        page = open_page()
        names = upload(page, folder / "city" / "city-03.png")
        page.click(f"#hits li:nth-child({names.index('sent.png') + 1}) .why")
        wait_until(page, "document.getElementById('why-status').textContent.includes('not kept')")
        assert page.locator("#why image").count() == 2
        assert not page.is_visible("#slide")
    finally:
        index.remove(["sent.png"])


def test_boxes_on_the_same_place(open_page, scenes):
    """A box that would hide another is dashed."""
    page = open_page()
    match = {"query": [10, 20, 90], "hit": [0, 0, 60], "weight": 0.1}
    other = match | {"hit": [5, 5, 70]}
    answer = {"score": 0.4, "matches": [match, other], "milliseconds": 1.0}
    page.route("**/api/explain/*", lambda route: route.fulfill(json=answer))
    upload(page, scenes[1] / "city" / "city-03.png")
    page.click("#hits li:nth-child(2) .why")
    page.wait_for_selector("#why-query rect")
    assert page.locator("#why-query rect[stroke-dasharray]").count() == 1
    assert page.locator("#why-hit rect[stroke-dasharray]").count() == 0


def test_errors(open_page, scenes, tmp_path):
    """Files that are not pictures, or too large, are refused with a message; then it goes on."""
    page = open_page(max_bytes=300_000)
    (tmp_path / "letter.png").write_text("dear")
    page.set_input_files("#file", tmp_path / "letter.png")
    page.wait_for_selector("#error:not([hidden])")
    assert "The file is not a picture in a known format" in page.text_content("#error")
    assert "(the browser cannot show it)" in page.text_content("#caption")
    assert not page.is_visible("#frame")
    assert not page.is_visible("#hint")
    (tmp_path / "empty.png").write_bytes(b"")
    page.set_input_files("#file", tmp_path / "empty.png")
    assert page.text_content("#error") == "empty.png is empty."
    noise = np.random.default_rng(0).integers(0, 256, (500, 500, 3)).astype(np.uint8)
    Image.fromarray(noise).save(tmp_path / "large.png")
    page.set_input_files("#file", tmp_path / "large.png")
    wait_until(page, "document.getElementById('error').textContent.includes('larger than')")
    name = '<img src=x onerror="document.title=1">.png'
    shutil.copy(scenes[1] / "city" / "city-00.png", tmp_path / name)
    upload(page, tmp_path / name)
    assert not page.is_visible("#error")
    assert page.is_visible("#frame")
    assert page.title() == "Image search"
    page.evaluate("location.hash = 'image=99999'")
    page.wait_for_selector("#error:not([hidden])")
    assert "no image 99999" in page.text_content("#error")


def test_narrow_and_dark(open_page, scenes):
    """On a phone nothing is wider than the screen; dark follows the system."""
    page = open_page(NARROW, "dark")
    upload(page, scenes[1] / "meadow" / "meadow-04.png")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(20, 24, 22)"
    shot(page, "narrow")
    page.tap("#hits li:nth-child(2) .why")
    page.wait_for_selector("#why-hit rect")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.press("Escape")
    page.tap("#hits li:nth-child(9) .again")  # far below: Playwright scrolls to it
    wait_until(page, "location.hash.startsWith('#image=')")
    wait_for_hits(page)
    assert page.evaluate("window.scrollY") == 0


def test_server_is_away(open_page, scenes):
    """A server that does not answer is reported."""
    page = open_page()
    page.route("**/api/search*", lambda route: route.abort())
    page.set_input_files("#file", scenes[1] / "city" / "city-00.png")
    page.wait_for_selector("#error:not([hidden])")
    assert "The server cannot be reached" in page.text_content("#error")
