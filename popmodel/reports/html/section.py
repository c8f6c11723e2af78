"""A section of a page: what its template and its script are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from popmodel.base.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Section:
    """One section of a page."""

    # Names its template ``ID.html`` and, where they exist, ``ID.js`` and ``ID.css``; its anchor on
    # the page.
    id: str
    title: str  # Its heading
    context: Mapping[str, Any]  # What the template is given, by name. All text is escaped there
    data: Mapping[str, Any] = field(default_factory=dict)  # Plain data for the script
    # Arrays for the script, of integers of at most 32 bits or of floats. Names begin with `id`.
    packed: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    vendor: tuple[str, ...] = ()  # Libraries that the script needs: ``"uplot"``
    # What several sections share, by the name of its script and style.
    uses: tuple[str, ...] = ()
    template: str = ""  # The name of its template, where that is not `id`
