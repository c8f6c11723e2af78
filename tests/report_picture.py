"""Draw the picture of a report that README and documentation show.

``python tests/report_picture.py``, where there is a browser.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from chromium import launched

import popmodel

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "popmodel" / "docs" / "report.png"
STENCIL = ROOT / "examples" / "traces" / "stencil3d.2x2.prv.gz"
SIZE = (1000, 760)
"""Width and height, pixels."""


def drawn(page: Any) -> bytes:
    """The first view: verdict, efficiencies, timeline."""
    width, height = SIZE
    picture: bytes = page.screenshot(clip={"x": 0, "y": 0, "width": width, "height": height})
    return picture


def main() -> None:
    """Write the picture."""
    width, height = SIZE
    with tempfile.TemporaryDirectory() as folder, launched() as browser:
        path = Path(folder) / "report.html"
        popmodel.report(STENCIL).save(path)
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")
        PICTURE.write_bytes(drawn(page))


if __name__ == "__main__":
    main()
