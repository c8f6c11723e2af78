"""What messages share on the networks that a replay is asked for: links, buses, a topology."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

from popmodel.api.inputs import several
from popmodel.base.errors import UsageError
from popmodel.network.network import check_sharing
from popmodel.network.topology import FatTree, Topology, Torus, read_topology

_Read = TypeVar("_Read")
Counts: TypeAlias = "int | str | Iterable[int | str]"
TopologyLike: TypeAlias = "str | os.PathLike[str] | Topology"


def shared(
    *,
    links: Counts | None = None,
    buses: Counts | None = None,
    links_within: Counts | None = None,
    sharing: str | Iterable[str] | None = None,
    topology: TopologyLike | Iterable[TopologyLike] | None = None,
) -> list[list[dict[str, object]]]:
    """Return, for each of these that is given, its values as changes of `Network`."""
    found: list[list[dict[str, object]]] = []
    if links is not None:
        found.append(_each("links", links_of, links))
    for name, given in (("buses", buses), ("links_within", links_within)):
        if given is not None:
            found.append([{name: count} for count in _each(name, number_of, given)])
    if sharing is not None:
        for one in several(sharing):
            check_sharing(one)
        found.append([{"sharing": one} for one in several(sharing)])
    if topology is not None:
        found.append([{"topology": one} for one in topologies(topology)])
    return found


def _each(name: str, read: Callable[[int | str], _Read], given: Counts) -> list[_Read]:
    try:
        return [read(one) for one in several(given)]
    except UsageError as error:
        raise UsageError(f"{name.replace('_', ' ')}: {error.message}", error.hint) from error


def topologies(given: TopologyLike | Iterable[TopologyLike]) -> list[Topology]:
    """Return topologies, read from files where they are none; raises as `shared`."""
    return [
        one if isinstance(one, FatTree | Torus) else read_topology(one) for one in several(given)
    ]


def links_of(given: int | str) -> dict[str, object]:
    """Return the links of a node, ``1`` or ``2:1``, as a change of `Network`; or a `UsageError`."""
    output, colon, into = str(given).partition(":")
    try:
        first = number_of(output)
        return {"output_links": first, "input_links": number_of(into) if colon else first}
    except UsageError:
        raise UsageError(
            f"must be a whole number of at least 0, or OUT:IN, not '{given}'",
            "write 1, or 2:1 for two links out and one in; 0 means as many as are needed",
        ) from None


def number_of(given: int | str) -> int:
    """Return a number of links or buses; a text that is none is a `UsageError`."""
    text = str(given).strip()
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise UsageError(
            f"must be a whole number of at least 0, not '{given}'",
            "0 means as many as are needed",
        )
    return int(text)
