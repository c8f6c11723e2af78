"""A page: one HTML file with its style, scripts and data, which asks nothing of a network."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from popmodel.base.errors import FileError
from popmodel.base.units import format_time
from popmodel.reports import palette
from popmodel.reports.html.contents import Contents, Section, alone
from popmodel.reports.html.packing import folded, pack, pack_text, unpack_text
from popmodel.reports.renderers.data import encodable
from popmodel.reports.renderers.html import html
from popmodel.reports.renderers.text import clean
from popmodel.reports.views import Document, Views

if TYPE_CHECKING:
    from popmodel.reports.renderers.text import Style


DOCUMENT = "document"
"""Id of the element that holds the report as JSON."""

FIRST = ("verdict", "efficiencies", "sizes", "timeline")
"""Sections of the first view."""
_BETWEEN_CELLS = re.compile(r"\s+(</?(?:td|th|tr|thead|tbody|table)[ >])")
"""Blanks that a browser shows nowhere; there are thousands of them."""
_DEFLATED = re.compile(r'\{"deflate_base64":"([^"]*)"\}')
_LARGE_DOCUMENT = 32_768
_LARGE_DATA = 1_024
"""Characters of JSON from which on it is deflated."""
_TEMPLATES = Path(__file__).parent.parent / "templates"
_HELD = re.compile(
    rf'<script type="application/json" id="{DOCUMENT}">(.*?)</script>', re.DOTALL | re.IGNORECASE
)
# What could end a script, or begin markup in one, is written as an escape of JSON.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def render(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (no lines)
    """A document as a page of its own."""
    return page((views.contents or alone)(document))


def page(contents: Contents) -> str:
    """Return the page of a report."""
    try:
        return _page(contents)
    except Exception as error:
        for path, document in contents.saved.items():
            if len(contents.saved) == 1 or not _is_shown(document):
                problem = f"is damaged: what it says does not fit together ({error!r})"
                raise FileError(path, problem, hint="save the result again") from error
        raise


def _is_shown(document: Document) -> bool:
    """Whether a report has a page of its own."""
    try:
        _page(Contents(document))
    except Exception:  # whatever it is, this report is it
        return False
    return True


def _page(contents: Contents) -> str:
    shown = sorted(sections(contents), key=lambda section: section.id not in FIRST)
    script = _own("page.js")
    own = [_own(name) for one in shown for name in _scripts(one.id)]
    library = "\n".join(own)
    text = (
        _environment()
        .get_template("page.html")
        .render(
            title=contents.title,
            stamp=contents.document["provenance"],
            sections=shown,
            first=FIRST,
            opened=_opened(shown),
            script=script,
            styles=[_common(), *_styles(shown)],
            policy=_policy([f"\n{script}\n", library]),
            library=pack_text(library) if library else "",
            document_id=DOCUMENT,
            document=stored(in_script(contents.document), _LARGE_DOCUMENT),
            data={one.id: stored(in_script(one.data), _LARGE_DATA) for one in shown if one.data},
            packed={name: pack(data) for one in shown for name, data in one.packed.items()},
        )
    )
    return folded(_BETWEEN_CELLS.sub(r"\1", text))


def sections(contents: Contents) -> Iterator[Section]:
    """The sections for which there is something to show, in their order."""
    from popmodel.reports.html import page_results, page_verdict
    from popmodel.reports.html.page_communication import section as communication
    from popmodel.reports.html.page_efficiencies import section as efficiencies
    from popmodel.reports.html.page_timeline import section as timeline
    from popmodel.reports.html.page_whatif import section as whatif

    drawn = (page_verdict.verdict_section, efficiencies, timeline, whatif, communication)
    yield from filter(None, (section(contents) for section in drawn))
    yield from page_results.sections(contents)
    yield page_verdict.provenance_section(contents)


def _opened(shown: Sequence[Section]) -> str:
    """The section that is open at first: none below a timeline."""
    ids = [one.id for one in shown if one.id not in FIRST]
    return "" if any(one.id == "timeline" for one in shown) else next(iter(ids), "")


def fragment(*shown: Section) -> str:
    """Return sections alone, with their style, for a notebook: no script runs there."""
    template = _environment().get_template("fragment.html")
    # Nested, so that it changes nothing else of the notebook.
    rules = [_common(), *_styles(shown)]
    style = "\n".join([".popmodel {", *rules, "}"])
    return template.render(sections=shown, style=style)


def held(text: str) -> str | None:
    """Return the report that a page holds, as JSON; None where it holds none."""
    found = _HELD.search(text)
    if found is None:
        return None
    deflated = _DEFLATED.fullmatch(found[1])
    return found[1] if deflated is None else unpack_text(deflated[1])


def stored(text: str, large: int) -> str:
    """JSON as it stands in a page: what is large is deflated, and still JSON, which says so."""
    return text if len(text) <= large else f'{{"deflate_base64":"{pack_text(text)}"}}'


def in_script(data: Any) -> str:
    """Plain data as JSON that can stand in a script: nothing in it ends that, or is markup."""
    text = json.dumps(encodable(data), allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def _policy(scripts: Sequence[str]) -> str:
    """What the page may do: run these scripts, and nothing else; ask for nothing."""
    hashes = " ".join(
        f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


@cache
def _environment() -> Environment:
    """The templates; all that they show is escaped, and what is not there is an error."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_cleaned,
    )
    made.filters |= {"time": format_time, "brief_time": partial(format_time, digits=3)}
    return made


def _cleaned(value: Any) -> Any:
    """Text without control characters, which have no place in a page; lines stay lines."""
    if type(value) is not str or value.isprintable():
        return value
    return "\n".join(map(clean, value.split("\n")))


@cache
def _common() -> str:
    """The style of all sections."""
    return "\n".join([_own("style.css"), _own("blocks.css"), palette.rules()])


@cache
def _file(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8").strip("\n")


@cache
def _own(name: str) -> str:
    """A script or style of this project, without what only its readers need."""
    text = _file(name) if (_TEMPLATES / name).exists() else ""
    lines = (line.strip() for line in text.split("\n"))
    bare = (re.sub(r"(^|\s+)// .*", "", line) for line in lines)
    kept = "\n".join(filter(None, bare))
    return _tight(kept) if name.endswith(".css") else kept


def _tight(style: str) -> str:
    """A style without comments and blanks that separate nothing."""
    bare = re.sub(r"/\*[^*]*\*/", "", style)
    return re.sub(r";?\s*([{};])\s*", r"\1", re.sub(r"([:,])\s+", r"\1", bare)).strip()


def _styles(shown: Sequence[Section]) -> list[str]:
    """The styles of sections."""
    return [text for one in shown if (text := _own(f"{one.id}.css"))]


def _scripts(id: str) -> list[str]:
    """The scripts of a section: the one that draws it, after those that it uses."""
    own = [path.name for path in sorted(_TEMPLATES.glob(f"{id}-*.js"))]
    return [*own, f"{id}.js"] if (_TEMPLATES / f"{id}.js").exists() else own


def notebook(document: Document, views: Views) -> str:
    """Return a document as HTML: what its screen shows."""
    shown = [{"body": html(views.blocks(document), heading=4, brief=True)}]
    return fragment(Section("result", "Result", {"shown": shown}, template="results"))
