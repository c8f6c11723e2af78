"""``popmodel docs``: the pages, and what any name on a screen means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from popmodel.base.errors import UsageError
from popmodel.base.values import document
from popmodel.cli.command import OfCommand, argument
from popmodel.cli.completion import PACKAGE, family_names, metric_ids, read_toml
from popmodel.reports import formats

if TYPE_CHECKING:
    from popmodel.cli.glossary import Word
    from popmodel.efficiency.family import Family

EXAMPLES = (
    "popmodel docs",
    "popmodel docs tutorial",
    "popmodel docs load_balance",
    "popmodel docs talp.openmp_scheduling_efficiency",
    "popmodel docs memory.bsat",
    "popmodel docs expected loss",
)
FORMATS = (*formats.NAMES, formats.HTML.name)
SCHEMA = "popmodel/docs/1"
ELSEWHERE = {"grammar": PACKAGE / "model" / "signature" / "bundled" / "README.md"}
"""Pages that lie beside what they describe, by name."""
_PICTURE = re.compile(r"!\[([^\]]+)\]\([^)\s]+\)")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")

FIRST = (
    "install",
    "tutorial",
    "check",
    "study",
    "extraction",
    "signatures",
    "grammar",
    "metrics",
    "report",
    "ci",
    "definitions",
    "numbers",
    "validation",
    "traces",
    "runs",
    "calibration",
    "sensitivity",
    "projection",
    "clusters",
    "troubleshooting",
    "json",
    "tables",
    "parameters",
)
"""The order in which a new user needs the pages; others follow."""


class Page:
    """A page: its name for ``popmodel docs NAME``, its file and its title."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path = name, path
        with path.open(encoding="utf-8") as lines:
            self.title = next(line for line in lines if line.startswith("# "))[2:].strip()

    def text(self) -> str:
        """The text of the page, as Markdown."""
        return self.path.read_text(encoding="utf-8")


def pages() -> list[Page]:
    """All pages, in reading order."""
    paths = {path.stem: path for path in sorted((PACKAGE / "docs").glob("*.md"))} | ELSEWHERE
    names = dict.fromkeys([*(name for name in FIRST if name in paths), *paths])
    return [Page(name, paths[name]) for name in names]


class Documentation(OfCommand):
    """What is known of a name, as returned by `docs`: a page, a metric, a family, other words."""


def _name(name: str, words: Sequence[str]) -> str:  # noqa: ARG001 (a reader's signature)
    """Several words are one name: quotes are easily forgotten."""
    return " ".join(words)


def _completed(ctx: Any) -> Iterable[str]:
    """Pages, and what is explained, as far as it is one word."""
    from popmodel.model.symbols import SYMBOLS

    glossary = read_toml(PACKAGE / "cli" / "glossary.toml")
    yield from (page.name for page in pages())
    yield from family_names(ctx)[:-1]
    yield from metric_ids(ctx)
    yield from SYMBOLS
    yield from glossary["abbreviations"]
    yield from (term["name"] for term in glossary["term"] if " " not in term["name"])


def docs(
    name: Annotated[
        str | None,
        argument(
            "[NAME]",
            "A page, or a name to explain: a metric or its abbreviation, FAMILY.METRIC, a family, "
            "a parameter of a machine, a key of a signature, any term on a screen. Default: list "
            "the pages; with --all also all names.",
            _name,
            several=True,
            complete=(_completed,),
        ),
    ] = None,
) -> Documentation:
    """Show a page of the documentation, or explain a name on a screen.

    For a metric: formula, parts, and what to check when it is low. For a family: when to use it,
    and its metrics, one per line. The pages come with popmodel: no network is needed. On a
    terminal, a page longer than the screen is shown by $PAGER, or by less.

    Parameters
    ----------
    name : str, optional
        The page, or the name; default: the list of all.

    Raises
    ------
    UsageError
        If there is no such name: with those that are near.

    Examples
    --------
    >>> import popmodel
    >>> popmodel.docs("speedup").to_dict()["definitions"][0]["formula"]
    'work ratio * runtime_ref / runtime'
    """
    from popmodel.cli import glossary
    from popmodel.efficiency.explain import near_names, plain
    from popmodel.efficiency.hierarchy import load_families

    families = load_families()
    known_pages = {page.name: page for page in pages()}
    if not name:
        listed = [{"page": page.name, "title": page.title} for page in known_pages.values()]
        return Documentation(_catalogue(families.values(), glossary.words(), pages=listed))
    if name in known_pages:
        page = known_pages[name]
        text = {"page": name, "title": page.title, "text": page.text()}
        shown = {**text, "shown": _terminal_markdown(page, known_pages.values())}
        words = [word for word in glossary.find(name) if word.name == name]
        return Documentation(document(SCHEMA, **shown, words=words))
    if (found := _explanation(name, families)) is not None:
        return Documentation(found)
    known = {plain(id): id for family in families.values() for id in family.metrics}
    known |= {plain(id): id for id in (*families, *known_pages)} | glossary.names()
    hint = near_names(name, known) or "popmodel docs --all lists all names"
    raise UsageError(f"unknown name {name!r}", hint)


def _terminal_markdown(page: Page, others: Iterable[Page]) -> str:
    """The text of a page: links to others are the commands that show them, pictures their names."""
    names = {other.path.resolve(): other.name for other in others}

    def shown(match: re.Match[str]) -> str:
        text, target = match.groups()
        name = names.get((page.path.parent / target.partition("#")[0]).resolve())
        return match[0] if name is None else f"{text} (`popmodel docs {name}`)"

    return _LINK.sub(shown, _PICTURE.sub(r"Picture: \1.", page.text()))


def _explanation(name: str, families: Mapping[str, Family]) -> dict[str, Any] | None:
    """What a name means, if anything."""
    from popmodel.cli import glossary
    from popmodel.efficiency.explain import explain, find_family, find_metric, plain

    def meaning(metric: str | None, words: Sequence[Word] = ()) -> dict[str, Any]:
        unknown: dict[str, Any] = {"metric": None, "definitions": []}
        found = unknown if metric is None else explain(metric, families)
        return document(SCHEMA, **found, words=words)

    if "." in name and name.partition(".")[0] in families:
        return meaning(name)
    for spelling in dict.fromkeys([name, *_without_unit(name)]):
        family = find_family(spelling, families)
        if family is not None:
            return _catalogue([family])
        metric = find_metric(spelling, families) or glossary.abbreviations().get(plain(spelling))
        words = glossary.find(spelling, is_metric=metric is not None)
        if metric is not None or words:
            return meaning(metric, words)
    symbols = glossary.find_in_formulas(name)
    return meaning(None, symbols) if symbols else None


def _without_unit(name: str) -> list[str]:
    """A name without the unit that screens write behind it, and without brackets."""
    bare = name.strip().rstrip(":")
    return [bare, re.sub(r"(, ([mun]?s|%|ratios)| %| s|,)$", "", bare).strip(), bare.strip("()")]


def _catalogue(
    families: Iterable[Family], words: Sequence[Word] = (), **more: Any
) -> dict[str, Any]:
    """The metrics of families, and other words."""
    return document(
        SCHEMA,
        **more,
        words=words,
        families=[
            {
                "family": family.id,
                "title": family.title,
                "use": family.use,
                "source": family.source,
                "metrics": [
                    {
                        "metric": id,
                        "name": family.metrics[id].name,
                        "depth": depth,
                        "meaning": family.metrics[id].meaning,
                    }
                    for id, depth in _depths(family).items()
                ],
            }
            for family in families
        ],
    )


def _depths(family: Family) -> dict[str, int]:
    """Every metric once, with its depth where the family's trees list it first."""
    found: dict[str, int] = {}
    for walk in family.tree():
        for line in walk.rows:
            found.setdefault(line.metric, line.depth)
    return found
