"""Pages in a real browser: opened from their files, with the network cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import NAMES, chromium, launched

import popmodel

Open = Callable[..., Any]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The Chromium of this machine; without one these tests have nothing to run in."""
    if chromium() is None:
        pytest.skip(f"needs a browser: {', '.join(NAMES)} on the path (Debian: chromium)")
    with launched() as started:
        yield started


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Opens a file as a page and waits until all is drawn.

    A page may ask for nothing but its own file, and has nothing to say on the console: the test
    fails otherwise, whatever it looks at.
    """
    said: list[str] = []
    contexts = []

    def opened(
        path: Path,
        fragment: str = "",
        *,
        width: int = 1280,
        height: int = 900,
        scheme: str = "light",
        expected: str = "",
        **options: Any,
    ) -> Any:
        """`fragment` begins after the ``#``; `expected` is a console message that may come."""
        context = browser.new_context(
            offline=True,
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            reduced_motion="reduce",
            **options,
        )
        contexts.append(context)
        page = context.new_page()
        own = path.resolve().as_uri()

        def asked(request: Any) -> None:
            # What the page makes of its own data (a file to save) goes over no network.
            if request.url.split("#")[0] != own and not request.url.startswith(("blob:", "data:")):
                said.append(f"request of {request.url}")

        page.on("request", asked)
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on(
            "console",
            lambda message: (
                None
                if expected and expected in message.text
                else said.append(f"console: {message.text}")
            ),
        )
        page.goto(f"{own}#{fragment}" if fragment else own)
        page.wait_for_selector("html[data-ready]", state="attached")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert said == []


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
        popmodel.replay(STENCIL, latency=["1us", "10us"]),
        popmodel.sweep("stencil3d", cores=16),
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
    popmodel.make_report(inputs).save(path)
    return path
