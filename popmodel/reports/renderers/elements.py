"""Elements of HTML, in which all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup, escape

from popmodel.reports.renderers.text import clean

NOTHING = Markup()


def element(name: str, *contents: str, **given: str | int | None) -> Markup:
    """An element with its contents."""
    inside = NOTHING.join(map(_text, contents))
    return Markup("<{}{}>{}</{}>").format(Markup(name), _attributes(given), inside, Markup(name))


def _attributes(given: Mapping[str, str | int | None]) -> Markup:
    """Attributes of an element, each behind a blank."""
    return NOTHING.join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _text(str(value)))
        for key, value in given.items()
        if value is not None
    )


def _text(content: str) -> Markup:
    """Text escaped and without control characters; markup as it is."""
    if isinstance(content, Markup):
        return content
    known = content if content.isprintable() else "\n".join(map(clean, content.split("\n")))
    return escape(known)


def join(parts: Iterable[Markup]) -> Markup:
    """Elements behind each other, each on a line of its own."""
    return Markup("\n").join(parts)


def scrolled(content: Markup, label: str) -> Markup:
    """Something wide in a box that scrolls, by keyboard too; no landmark, as there are many."""
    return element("div", content, class_="wide", tabindex=0, role="group", aria_label=label)


def nested(entries: Sequence[tuple[int, Markup]], kind: str | None = None) -> Markup:
    """A list of entries with their depths: what is deeper belongs to what stands above it."""
    items: list[Markup] = []
    at = 0
    while at < len(entries):
        depth, content = entries[at]
        end = at + 1
        while end < len(entries) and entries[end][0] > depth:
            end += 1
        below = [nested(entries[at + 1 : end])] if end > at + 1 else []
        items.append(element("li", content, *below))
        at = end
    return element("ul", *items, class_=kind)
