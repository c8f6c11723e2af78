"""Pages in a real browser: opened from their files, with the network cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from chromium import NAMES, chromium, launched
from patience import GENEROUS

import popmodel

Open = Callable[..., Any]

AT_REST = """(() => {
  const [set, clear] = [setTimeout, clearTimeout];
  const waiting = new Set();
  window.setTimeout = (act, after, ...values) => {
    const id = set(() => {
      waiting.delete(id);
      act(...values);
    }, after);
    waiting.add(id);
    return id;
  };
  window.clearTimeout = id => {
    waiting.delete(id);
    clear(id);
  };
  const unpacked = Response.prototype.arrayBuffer;
  Response.prototype.arrayBuffer = async function () {
    waiting.add(this);
    try {
      return await unpacked.call(this);
    } finally {
      waiting.delete(this);
    }
  };
  const frame = () => new Promise(requestAnimationFrame);
  window.atRest = async () => {
    do {
      await frame();
      await frame();
    } while (waiting.size);
  };
})();"""
"""Lets tests wait until a page has drawn, and has done all that it put off."""

UNFOLD = (
    """for (const one of document.querySelectorAll(".fold, .timeline-more")) one.open = true;"""
)
"""Opens the sections that are folded up, and what the timeline has beside its picture."""


class Tab:
    """A page of the browser that shows one file after the other.

    A file may ask for nothing but itself, and has nothing to say on the console: what it does say
    is kept.
    """

    def __init__(self, browser: Any, **options: Any) -> None:
        self.said: list[str] = []
        self._own = ""
        self._context = browser.new_context(offline=True, **options)
        self._context.set_default_timeout(1e3 * GENEROUS)
        self._context.add_init_script(AT_REST)
        self._page = self._context.new_page()
        self._page.on("request", self._asked)
        self._page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self._page.on("console", lambda message: self.said.append(f"console: {message.text}"))

    def _asked(self, request: Any) -> None:
        # What the page makes of its own data (a file to save) goes over no network.
        url = request.url
        if url.split("#")[0] != self._own and not url.startswith(("blob:", "data:")):
            self.said.append(f"request of {url}")

    def show(
        self,
        path: Path,
        fragment: str,
        size: tuple[int, int],
        scheme: str,
        permissions: Sequence[str],
        unfolded: bool,
    ) -> Any:
        """The page, once all of a file is drawn."""
        self.leave()
        self._own = path.resolve().as_uri()
        self._context.grant_permissions([*permissions])
        self._page.set_viewport_size({"width": size[0], "height": size[1]})
        self._page.emulate_media(media="null", color_scheme=scheme, reduced_motion="reduce")
        self._page.goto(f"{self._own}#{fragment}" if fragment else self._own)
        self._page.wait_for_selector("html[data-ready]", state="attached")
        if unfolded:
            self._page.evaluate(UNFOLD)
            self._page.evaluate("atRest()")
        return self._page

    def leave(self) -> None:
        """Show nothing and know nothing of what was shown."""
        if self._page.url != "about:blank":
            self._page.goto("about:blank")
            self._page.mouse.move(0, 0)
            self._context.clear_permissions()

    def close(self) -> None:
        self._context.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The Chromium of this machine; without one these tests have nothing to run in."""
    if chromium() is None:
        pytest.skip(f"needs a browser: {', '.join(NAMES)} on the path (Debian: chromium)")
    expect = pytest.importorskip("playwright.sync_api").expect
    expect.set_options(timeout=1e3 * GENEROUS)  # as long as everything else is waited for
    with launched() as started:
        yield started


@pytest.fixture(scope="session")
def kept() -> list[Tab]:
    """The one that shows nothing at present: to make another takes longer than to draw a page."""
    return []


@pytest.fixture
def open_page(browser: Any, kept: list[Tab], request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens a file as a page and waits until all is drawn; what was open before is no more.

    The test fails if a page says something, whatever it looks at.
    """
    failed = request.session.testsfailed
    tabs = [kept.pop() if kept else Tab(browser)]

    def opened(
        path: Path,
        fragment: str = "",
        *,
        width: int = 1280,
        height: int = 900,
        scheme: str = "light",
        permissions: Sequence[str] = (),
        unfolded: bool = True,
        **options: Any,
    ) -> Any:
        """`fragment` begins after the ``#``; pages that need `options` are not kept."""
        if options:
            tabs.append(Tab(browser, **options))
        return tabs[-1].show(path, fragment, (width, height), scheme, permissions, unfolded)

    yield opened
    for tab in tabs:
        tab.leave()
    said = [one for tab in tabs for one in tab.said]
    # Where a test failed or a page said something, nobody knows what is held down or to come.
    if not said and request.session.testsfailed == failed:
        kept.append(tabs.pop(0))
    for tab in tabs:
        tab.close()
    assert said == []


@pytest.fixture(scope="session")
def plain(browser: Any) -> Iterator[Any]:
    """A page that runs no scripts."""
    context = browser.new_context(java_script_enabled=False, offline=True)
    context.set_default_timeout(1e3 * GENEROUS)
    yield context.new_page()
    context.close()


ROOT = Path(__file__).parent.parent.parent
STENCIL = ROOT / "examples" / "traces" / "stencil3d.2x2.prv.gz"
BT_MZ = ROOT / "tests" / "data" / "bt-mz.S.2x2.prv.gz"


@pytest.fixture(scope="session")
def whole_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report that has every section: two runs, replays, splits, a prediction, a validation."""
    return written(
        tmp_path_factory,
        STENCIL,
        BT_MZ,
        popmodel.whatif(STENCIL, latency=["1us", "10us"]),
        popmodel.predict("stencil3d", cores=16),
        popmodel.predict("stencil3d", procs=4, threads=4),
        popmodel.validate(
            "stencil3d",
            ROOT / "examples" / "stencil3d" / "two-core-vm.csv",
            machine=ROOT / "examples" / "profiles" / "two-core-vm.json",
            settings={"N": 256},
        ),
    )


@pytest.fixture(scope="session")
def run_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of one run of two processes with two threads."""
    return written(tmp_path_factory, STENCIL)


@pytest.fixture
def timeline_page(run_page: Path, open_page: Open) -> Open:
    """Opens the page of one run."""
    return lambda fragment="", **options: open_page(run_page, fragment, **options)


def written(folders: pytest.TempPathFactory, *inputs: Any) -> Path:
    """A report of some inputs, in a file."""
    path = folders.mktemp("page") / "report.html"
    popmodel.report(inputs).save(path)
    return path
