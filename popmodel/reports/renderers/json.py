"""Documents as JSON: what they are, numbers at full precision."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from popmodel.base.plain import plain

if TYPE_CHECKING:
    from popmodel.reports.renderers.tables import Style
    from popmodel.reports.views import Document, Views


def render(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (all of it)
    """A document as JSON."""
    return json.dumps(encodable(document), indent=1, allow_nan=False) + "\n"


def encodable(value: Any) -> Any:
    """Plain data whose texts UTF-8 can hold: file names may have bytes that readers refuse."""
    return plain(value, _encodable)


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
