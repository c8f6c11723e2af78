"""Documents as pictures: SVG, the same for the same document, in which names are text."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from popmodel.base.errors import PopmodelError, UsageError
from popmodel.reports.renderers.data import encodable
from popmodel.reports.renderers.text import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from popmodel.reports.renderers.text import Style
    from popmodel.reports.views import Document, Views

_BLANK = "\N{NO-BREAK SPACE}"
_CHARACTERS = 24  # of the foot, for an inch
_STYLE: Mapping[Any, Any] = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "figure.constrained_layout.use": True,
    "figure.titlesize": "medium",
    "font.size": 8.0,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "popmodel",  # ids are the same each time
    "text.parse_math": False,  # a $ in a name is a $
}


def render(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (no lines)
    """The picture of a document that has one."""
    if views.picture is None:
        raise UsageError(
            "this result has no picture",
            "metrics, inspect, predict --cores, validate and convert draw; others: -o x.html",
        )
    picture = views.picture
    if isinstance(picture, str):
        expect_matplotlib()
        picture = getattr(import_module("popmodel.reports.pictures"), picture)
    return draw(picture, encodable(document), document["provenance"])


def expect_matplotlib() -> None:
    """Refuse to draw where nothing can: before the work, rather than after it."""
    if find_spec("matplotlib") is None:
        raise PopmodelError("pictures need matplotlib", "pip install 'popmodel-hpc[plots]'")


def draw(picture: Callable[[Any], Figure], shown: Any, stamp: Mapping[str, Any]) -> str:
    """A picture as SVG, with where it comes from at its foot and in its metadata."""
    expect_matplotlib()
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # the font that shows it has it
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        figure = picture(shown)
        by = f"popmodel {stamp['popmodel']}, {stamp['time']}: {stamp['command']}"
        foot = textwrap.fill(by, int(_CHARACTERS * figure.get_figwidth()))
        figure.supxlabel(foot, size=5.5, color="#5f6368", x=0.01, ha="left")
        figure.savefig(
            text,
            format="svg",
            metadata={
                "Creator": f"popmodel {stamp['popmodel']}",
                "Date": stamp["time"],
                "Description": stamp["command"],
                "Title": figure.get_suptitle(),
            },
        )
    # Names may hold anything, and blanks at the beginning of a text would be dropped.
    lines = "\n".join(map(clean, text.getvalue().split("\n")))
    return re.sub("(?<=>) +(?=[^ <])", lambda blanks: _BLANK * len(blanks[0]), lines)
