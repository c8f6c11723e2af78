"""HTML read by a parser that knows nothing of who wrote it."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

VOID = {"br", "hr", "img", "input", "link", "meta"}


@dataclass
class Node:
    """An element with its attributes and what is in it: elements and texts."""

    name: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    contents: list[Node | str] = field(default_factory=list)

    @property
    def children(self) -> list[Node]:
        return [one for one in self.contents if isinstance(one, Node)]

    @property
    def text(self) -> str:
        """All text in the order of the document."""
        return " ".join(one if isinstance(one, str) else one.text for one in self.contents).strip()

    def all(self, name: str, **attributes: str) -> list[Node]:
        """Elements of a name below this one, in order; with these attributes."""
        found = []
        for child in self.children:
            if child.name == name and attributes.items() <= child.attributes.items():
                found.append(child)
            found += child.all(name, **attributes)
        return found

    def has_class(self, name: str) -> bool:
        return name in (self.attributes.get("class") or "").split()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Node("")]

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        made = Node(tag, dict(attrs))
        assert len(made.attributes) == len(attrs), f"an attribute of {tag} is given twice"
        self.open[-1].contents.append(made)
        if tag not in VOID:
            self.open.append(made)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.open[-1].contents.append(Node(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].name == tag, f"</{tag}> closes <{self.open[-1].name}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.open[-1].contents.append(data.strip())


def parsed(text: str) -> Node:
    """The elements of a text in which every one is closed."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert len(reader.open) == 1, f"<{reader.open[-1].name}> is not closed"
    return reader.open[0]
