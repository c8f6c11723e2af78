"""Parts of runtimes beside each other: a bar of several colours for each, and the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from popmodel.base.units import format_time
from popmodel.base.values import dataclass
from popmodel.model.run.delays import PARTS
from popmodel.reports.figures import percent

_COLOURS = ("computing", "wait", "io", "point-to-point", "openmp")
_OTHER = "other"
_WIDTH, _HEIGHT, _THICK = 300, 22, 14
_SEAM = 1  # pixels of paper between two parts, which are told apart by more than their colours


@dataclass(frozen=True)
class PageShare:
    """The parts of one runtime."""

    label: str  # Whose runtime it is
    bar: Markup  # The parts as a bar, whose length is the runtime
    # For each part its time and its share in words, and the time in seconds.
    cells: tuple[tuple[str, str, float], ...]


@dataclass(frozen=True)
class PageShares:
    """Parts of several runtimes: what the parts are, with the sign of each, and the runtimes."""

    parts: tuple[tuple[Markup, str], ...]
    rows: tuple[PageShare, ...]


def shares(times: Sequence[tuple[str, Mapping[str, float]]]) -> PageShares | None:
    """Lay out parts of runtimes; None without any."""
    names = list(dict.fromkeys(part for _, parts in times for part in parts))
    if not names:
        return None
    longest = max(sum(parts.values()) for _, parts in times)
    return PageShares(
        tuple((_sign(name), name) for name in names),
        tuple(_share(label, parts, names, longest) for label, parts in times),
    )


def _share(
    label: str, parts: Mapping[str, float], names: Sequence[str], longest: float
) -> PageShare:
    whole = sum(parts.values())
    boxes, x = [], 0.0
    for name in names:
        # rounding may leave a part a little below nothing
        width = max(parts.get(name, 0.0), 0.0) / longest * _WIDTH
        if width > _SEAM:
            boxes.append(_box(name, x, width - _SEAM))
        x += width
    top = (_HEIGHT - _THICK) / 2
    return PageShare(
        label,
        Markup(
            f'<svg class="drawing range" width="{_WIDTH}" height="{_HEIGHT}" '
            f'viewBox="0 {-top:g} {_WIDTH} {_HEIGHT}" aria-hidden="true">{"".join(boxes)}</svg>'
        ),
        tuple(
            (format_time(value, digits=3), f"{percent(value / whole)} %", value)
            for value in (parts.get(name, 0.0) for name in names)
        ),
    )


def _box(name: str, x: float, width: float) -> str:
    return f'<rect class="kind-{_colour(name)}" x="{x:.1f}" width="{width:.1f}" height="{_THICK}"/>'


def _sign(name: str) -> Markup:
    return Markup(
        '<svg class="drawing sign" width="12" height="12" viewBox="0 0 14 14" aria-hidden="true">'
        f"{_box(name, 0, 14)}</svg>"
    )


def _colour(name: str) -> str:
    return dict(zip(PARTS, _COLOURS, strict=True)).get(name, _OTHER)
