"""The documentation pages that ship with the package, and where their text is."""

from __future__ import annotations

import re
from pathlib import Path

from popmodel.base.errors import UsageError, did_you_mean
from popmodel.base.values import dataclass

PACKAGE = Path(__file__).parent.parent
ELSEWHERE = {"grammar": PACKAGE / "model" / "signature" / "bundled" / "README.md"}
"""Pages that lie beside what they describe, by name."""
_PICTURE = re.compile(r"!\[([^\]]+)\]\([^)\s]+\)")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")

FIRST = (
    "tutorial",
    "study",
    "extraction",
    "signatures",
    "grammar",
    "metrics",
    "report",
    "definitions",
    "numbers",
    "validation",
    "traces",
    "runs",
    "calibration",
    "sensitivity",
    "projection",
    "clusters",
    "json",
    "tables",
    "extending",
)
"""The order in which a new user needs the pages; others follow."""


@dataclass(frozen=True)
class Page:
    """A page: its name for ``popmodel docs NAME``, its title and its file."""

    name: str
    title: str
    path: Path

    def text(self) -> str:
        """The text of the page, as Markdown."""
        return self.path.read_text(encoding="utf-8")


def pages() -> list[Page]:
    """All pages, in reading order."""
    paths = {path.stem: path for path in sorted((PACKAGE / "docs").glob("*.md"))} | ELSEWHERE
    names = [name for name in FIRST if name in paths]
    names += [name for name in paths if name not in FIRST]
    return [Page(name, _title(paths[name]), paths[name]) for name in names]


def find(name: str) -> Page:
    """Find a page by its name."""
    known = {page.name: page for page in pages()}
    if name in known:
        return known[name]
    hint = did_you_mean(name, known, f"the pages are {', '.join(known)}")
    raise UsageError(f"unknown page '{name}'", hint)


def terminal_markdown(page: Page) -> str:
    """The text of a page: links to others are the commands that show them, pictures their names."""
    others = {other.path.resolve(): other.name for other in pages()}

    def shown(match: re.Match[str]) -> str:
        text, target = match.groups()
        name = others.get((page.path.parent / target.partition("#")[0]).resolve())
        return match[0] if name is None else f"{text} (`popmodel docs {name}`)"

    return _LINK.sub(shown, _PICTURE.sub(r"Picture: \1.", page.text()))


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as lines:
        return next(line for line in lines if line.startswith("# "))[2:].strip()
