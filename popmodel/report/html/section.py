"""A section of a page: what its template and its script are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Section:
    """One section of a page.

    Attributes
    ----------
    id : str
        Names its template ``ID.html`` and, where they exist, ``ID.js`` and ``ID.css``; its anchor
        on the page.
    title : str
        Its heading.
    context : mapping
        What the template is given, by name. All text is escaped there.
    data : mapping
        Plain data for the script.
    packed : mapping of str to array
        Arrays for the script, of integers of at most 32 bits or of floats. Names begin with `id`.
    vendor : tuple of str
        Libraries that the script needs: ``"uplot"``.
    uses : tuple of str
        What several sections share, by the name of its template, script and style: ``"parts"``.
    """

    id: str
    title: str
    context: Mapping[str, Any]
    data: Mapping[str, Any] = field(default_factory=dict)
    packed: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    vendor: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
