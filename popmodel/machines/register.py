"""The register of machine parameters: rows of their page, from which all tables of them follow.

What a profile may contain (`popmodel.machines.profile_schema`), what each quantity means and how
formulas write it (`popmodel.model.symbols`), what changes together in a what-if
(`popmodel.model.scale_factors`), which part of the measurement gives it, what predictions need and
what they leave unused (`popmodel.machines.profile_findings`), and what the page of a profile calls
it derive from here. A new parameter is a row of ``docs/parameters.md`` and the term that uses it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from popmodel.machines.parameter import TIERS, Parameter, is_free
from popmodel.machines.quantity import Quantity

_PAGE = Path(__file__).parents[1] / "docs" / "parameters.md"
_ASSUMED = re.compile(r"(\S+) \((\S+) \.\. (\S+)\): (.+)")
_INSTEAD = "in place of "


def _parameter(row: str) -> Parameter:
    """The entry of a row of the page."""
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    path, unit, part, meaning, short, values, changes, assumed, needed, unused = cells
    low, is_range, high = values.partition(" .. ")
    is_instead = needed.startswith(_INSTEAD)
    return Parameter(
        path.strip("`"),
        unit,
        part,
        meaning,
        short,
        zero=values == "at least 0" or low == "0",
        least=float(low) if is_range and float(low) < 0 else None,
        most=float(high) if is_range else None,
        plain=values == "plain",
        changes=changes,
        needed=dict(one.split(": ", 1) for one in needed.split("; ") if ": " in one),
        instead_of=tuple(needed.removeprefix(_INSTEAD).split(", ")) if is_instead else (),
        assumed=_assumed(assumed),
        unused=unused,
    )


def _assumed(text: str) -> Quantity | None:
    """What is taken of a parameter that a profile lacks: value, 90 % interval, and why."""
    if not text:
        return None
    found = _ASSUMED.fullmatch(text)
    assert found is not None, f"{_PAGE}: not VALUE (LOW .. HIGH): WHY: {text}"
    value, low, high = map(float, found.groups()[:3])
    return Quantity(value, low, high, "assumed", source=found[4])


REGISTER: tuple[Parameter, ...] = tuple(
    _parameter(row)
    for row in _PAGE.read_text(encoding="utf-8").splitlines()
    if row.startswith("| `")
)
"""All parameters, in the order of the page."""


# Looking up parameters by their paths.


BY_CORES = tuple(one.stem for one in REGISTER if one.path.endswith(".CORES"))
"""Tables by numbers of active cores."""


def _names(path: str) -> list[str]:
    """Names in a path, without entries of lists and the list of size classes."""
    return [name for name in re.split(r"\.|\[[^\]]*\]", path) if name not in ("", "classes")]


def _tree() -> dict[str, Any]:
    """All parameters by the names of their paths; ``*`` for names that are free."""
    tree: dict[str, Any] = {}
    for one in REGISTER:
        for tier in TIERS if one.has_tiers else ("",):
            *above, last = ("*" if is_free(name) else name for name in _names(one.in_tier(tier)))
            node = tree
            for name in above:
                node = node.setdefault(name, {})
            node[last] = one
    return tree


_TREE = _tree()


def _leaves(node: Any) -> list[Parameter]:
    if isinstance(node, Parameter):
        return [node]
    found = (one for inner in node.values() for one in _leaves(inner))
    return list({one.path: one for one in found}.values())  # once for all tiers


def below(path: str) -> list[Parameter]:
    """Return the parameters at a path and below it."""
    node: Any = _TREE
    for name in _names(path):
        node = node.get(name, node.get("*")) if isinstance(node, dict) else None
    if node is None:
        return [one for one in REGISTER if one.stem.replace(".TIER", "") == path]
    return _leaves(node)


def find(path: str) -> Parameter | None:
    """Return the parameter at a path, or that of all entries of the table there."""
    found = below(path)
    return found[0] if len({one.name for one in found}) == 1 else None


def unused(path: str) -> str:
    """Return the reason why the model does not use a quantity; empty if it does."""
    parameter = find(path)
    return "" if parameter is None else parameter.reason("".join(_names(path)[1:2]))


def part_of(path: str) -> str | None:
    """Name the part of the measurement that gives a quantity; None if none does."""
    found = below(path.partition(" (")[0])
    return found[0].part if found else None


def filled_by(part: str) -> tuple[str, ...]:
    """Return what a part of the measurement fills, and no other one: beginnings of paths.

    Whole sections of a profile come first, then quantities and tiers of the network.
    """
    parts: dict[str, set[str]] = {}
    for one in REGISTER:
        parts.setdefault(one.section, set()).add(one.part)
    filled = {
        one.section if len(parts[one.section]) == 1 else ".".join(stem.split(".")[:2]): None
        for one in REGISTER
        if one.part == part
        for stem in one.stems
    }
    return tuple(sorted(filled, key=lambda path: "." in path))
