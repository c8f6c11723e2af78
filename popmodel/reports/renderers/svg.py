"""Documents as drawings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from popmodel.base.errors import UsageError
from popmodel.reports.pictures import Bars, Cells, Charts, HeatMap, Picture, Timelines
from popmodel.reports.renderers import bars, cells, charts, heatmap, lanes, points
from popmodel.reports.renderers.sheet import sheet

if TYPE_CHECKING:
    from popmodel.reports.renderers.tables import Style
    from popmodel.reports.views import Document, Views


def render(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (no lines)
    """The drawing of a document that has one."""
    if views.picture is None:
        raise UsageError("this result has no picture", "use another format, such as -o x.html")
    return draw(views.picture(document), document["provenance"])


def draw(picture: Picture, stamp: Mapping[str, Any]) -> str:
    """A picture as SVG, with where it comes from at its foot."""
    shown = picture.shown
    if isinstance(shown, Bars):
        width, arranged = bars.arranged(shown)
    elif isinstance(shown, Charts):
        width, arranged = charts.arranged(shown)
    elif isinstance(shown, Timelines):
        width, arranged = lanes.arranged(shown)
    elif isinstance(shown, Cells):
        width, arranged = cells.arranged(shown)
    elif isinstance(shown, HeatMap):
        width, arranged = heatmap.arranged(shown)
    else:
        width, arranged = points.arranged(shown)
    by = f"popmodel {stamp['popmodel']}, {stamp['time']}: {stamp['command']}"
    return sheet(picture, width, arranged, [*picture.remarks, by], stamp)
