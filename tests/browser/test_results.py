"""Results in a browser: splits are there without scripts, nothing hinders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

import popmodel
from popmodel.base.units import format_time

from .conftest import UNFOLD, Open, written

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def splits_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory, popmodel.predict("stencil3d", cores=64, draws=60))


def test_splits_without_scripts_are_all_there(splits_page: Path, plain: Any) -> None:
    plain.goto(splits_page.as_uri())
    names = plain.locator("#splits tbody th").all_inner_texts()
    for split in ("64 x 1", "32 x 2", "16 x 4", "8 x 8", "4 x 16"):
        assert sum(split in name for name in names) == 1


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_splits_have_no_barriers(
    scheme: str, width: int, splits_page: Path, open_page: Open
) -> None:
    page = open_page(splits_page, width=width, scheme=scheme)
    page.evaluate(UNFOLD)
    found = Axe().run(page, {"include": ["#splits"]})
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture(scope="session")
def history_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("history") / "perf.jsonl"
    trace = ROOT / "examples" / "traces" / "stencil3d.2x2.prv.gz"
    popmodel.metrics(trace, history=path, label="before <b>")
    return written(tmp_path_factory, popmodel.metrics(trace, history=path, label="now"))


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_a_history_has_its_labels_and_no_barriers(
    scheme: str, width: int, history_page: Path, open_page: Open
) -> None:
    page = open_page(history_page, width=width, scheme=scheme)
    page.evaluate(UNFOLD)
    assert "before <b>" in page.locator("#history tbody th").all_inner_texts()
    found = Axe().run(page, {"include": ["#history"]})
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture(scope="session")
def sized_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = {"N": 128}
    return written(
        tmp_path_factory, popmodel.predict("stencil3d", procs=4, draws=40, settings=settings)
    )


def test_other_sizes_are_those_that_a_prediction_has(sized_page: Path, open_page: Open) -> None:
    """Inputs show other predictions as they are, and say between which they interpolate."""
    page = open_page(sized_page)
    answer = page.locator("#sizes-answer")
    for processes, threads, size in ((4, 1, 128), (2, 4, 256), (1, 2, 64)):
        page.get_by_label("N", exact=True).fill(str(size))
        page.locator("#sizes-processes").select_option(str(processes))
        page.locator("#sizes-threads").select_option(str(threads))
        other = popmodel.predict(
            "stencil3d", procs=processes, threads=threads, draws=40, settings={"N": size}
        )
        efficiency = other["parallel_efficiency"]
        told = answer.inner_text()
        assert told.startswith(f"{processes} x {threads}, N = {size}: runtime ")
        assert f"runtime {format_time(other['runtime'])} (90 %:" in told
        assert f"parallel efficiency {100 * efficiency:.1f} % (90 %:" in told
        assert "interpolated" not in told
    page.get_by_label("N", exact=True).fill("90")
    assert "; interpolated between N = 64 and 128" in answer.inner_text()
    page.get_by_label("N", exact=True).fill("1000")
    assert answer.inner_text().endswith("N must be from 64 to 256")
    assert page.evaluate("location.hash") == "#sizes-value=1000&sizes-processes=1&sizes-threads=2"
