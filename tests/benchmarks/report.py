"""Reports: what they cost, how large they are, when they show something.

``python tests/benchmarks/report.py [TRACE...]`` makes a report of each trace: by default of the
bundled stencil, of EPOCH on 16 processes (where ``shared/traces`` is), and of a stencil on 1,000
processes that is simulated apart from the package. Where there is a Chromium, the page is opened
from its file with the network cut, and tells itself when it first showed something and when all
was drawn.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from chromium import chromium, launched  # noqa: E402
from synthetic import programs, run  # noqa: E402

SHARED = Path(os.environ.get("POPMODEL_SHARED", ROOT.parent / "shared" / "traces"))
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
DRAWN = "performance.getEntriesByName('drawn')[0]?.startTime ?? null"


def simulated(folder: Path) -> Path:
    """A stencil on 10 x 10 x 10 processes, 20 steps."""
    path = folder / "stencil.1000.prv"
    run(programs.jacobi((10, 10, 10), 20), persistent=0.1, transient=0.05).write(path)
    return path


def made(trace: Path, page: Path) -> float:
    """CPU time of the command that makes the page, s; the trace is parsed each time."""
    before = getrusage(RUSAGE_CHILDREN)
    words = ["report", str(trace), "-o", str(page), "--force"]
    subprocess.run([sys.executable, "-m", "popmodel", *words], check=True)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def opened(page: Path) -> tuple[float | None, float | None]:
    """When the page first showed something and when all was drawn, ms; None without a browser."""
    if chromium() is None:
        return None, None
    with launched() as browser:
        context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
        shown = context.new_page()
        shown.goto(page.as_uri())
        shown.wait_for_selector("html[data-ready]", state="attached")
        return shown.evaluate(PAINT), shown.evaluate(DRAWN)


def main(arguments: list[str]) -> None:
    """Print a line for each trace."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        epoch = SHARED / "paraver" / "epoch_16proc.prv.gz"
        traces = [Path(one) for one in arguments] or [
            ROOT / "examples" / "traces" / "stencil3d.2x2.prv.gz",
            *([epoch] if epoch.is_file() else []),
            simulated(folder),
        ]
        print(
            f"{'trace':28} {'CPU, s':>7} {'page, kB':>9} {'first paint, ms':>16} {'drawn, ms':>10}"
        )
        for trace in traces:
            page = folder / "report.html"
            seconds = min(made(trace, page) for _ in range(3))
            paint, drawn = opened(page)
            times = " ".join(
                f"{'-' if one is None else format(one, '.0f'):>{width}}"
                for one, width in ((paint, 16), (drawn, 10))
            )
            size = page.stat().st_size / 1000
            print(f"{trace.name.partition('.prv')[0]:28} {seconds:7.2f} {size:9.0f} {times}")


if __name__ == "__main__":
    main(sys.argv[1:])
