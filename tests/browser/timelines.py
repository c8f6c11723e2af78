"""What tests of the timeline look at, and ask of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import patience

BEGIN, END = 0.012988235, 0.917495610
"""What is analysed of the run that most tests look at, s: without start and end of MPI."""
RUNTIME = END - BEGIN
Timeline = Callable[..., Any]


def picture(page: Any) -> Any:
    return page.locator(".timeline-picture")


def colours(page: Any) -> dict[str, int]:
    """How many pixels of the picture have each colour."""
    found: dict[str, int] = page.evaluate(
        """() => {
          const canvas = document.querySelector(".timeline-picture");
          const [width, height] = [canvas.width, canvas.height];
          const copy = Object.assign(document.createElement("canvas"), {width, height});
          const context = copy.getContext("2d", {willReadFrequently: true});
          context.drawImage(canvas, 0, 0);
          const {data} = context.getImageData(0, 0, width, height);
          const many = {};
          for (let i = 0; i < data.length; i += 4) {
            const name = `rgb(${data[i]}, ${data[i + 1]}, ${data[i + 2]})`;
            many[name] = (many[name] ?? 0) + 1;
          }
          return many;
        }"""
    )
    return found


def colour(page: Any, name: str) -> str:
    """What a variable of the style is at present."""
    found: str = page.evaluate(
        """name => {
          const probe = document.createElement("span");
          probe.style.color = `var(${name})`;
          document.body.append(probe);
          const found = getComputedStyle(probe).color;
          probe.remove();
          return found;
        }""",
        name,
    )
    return found


def state(page: Any) -> dict[str, str]:
    """What stands in the address once everything has come to rest."""
    page.evaluate("atRest()")
    text = page.url.partition("#")[2]
    return dict(part.split("=") for part in text.split("&") if "=" in part)


def seen(page: Any) -> tuple[float, float]:
    """The stretch that the address tells, s."""
    begin, end = state(page)["t"].split("..")
    return float(begin), float(end)


def until(page: Any, condition: str) -> None:
    """Wait for a condition; a page lets nobody evaluate text in it, so it is asked from outside."""
    patience.until(lambda: page.evaluate(condition), condition)


def middle(page: Any) -> tuple[float, float]:
    """In the second row of the measured run."""
    box = bounds(page)
    return box["x"] + box["width"] / 2, box["y"] + 0.37 * box["height"]


def bounds(page: Any) -> dict[str, float]:
    """Where the picture is on the screen, which it is brought to."""
    picture(page).evaluate("canvas => canvas.scrollIntoView()")
    found: dict[str, float] = picture(page).bounding_box()
    return found


def words(page: Any, name: str) -> str:
    found: str = page.locator(f".timeline-{name}").text_content()
    return found
