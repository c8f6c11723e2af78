"""The page as text: what holds without a browser."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.reports.html.contents import Contents, alone
from popmodel.reports.html.packing import unpack_text
from popmodel.reports.html.page import held, in_script, page

ROOT = Path(__file__).parent.parent.parent.parent
STENCIL = ROOT / "examples" / "traces" / "stencil3d.2x2.prv.gz"
HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "]]>&amp;&lt;",
    "{{ 7 * 7 }}{% raw %}",
    "'\"` onmouseover=alert(1) ",
    "a\x00b\x1b[31mc\x07",
    "\u202egnissim\u2028next",
    "x" * 10_000,
)
TEMPLATES = ROOT / "popmodel" / "reports" / "templates"
VOID = {"meta", "link", "br", "img", "input", "hr", "col", "wbr"}
STAMP = {"popmodel": "1", "command": "popmodel x", "host": "h", "time": "t", "inputs": []}


class Reader(HTMLParser):
    """Elements in order, texts outside of scripts, and elements that are not closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.wrong.append(f"</{tag}> in {self.open[-3:]}")

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def whole() -> str:
    return popmodel.report([STENCIL, popmodel.predict("stencil3d", cores=8)]).page()


@pytest.mark.long
def test_all_elements_are_closed(whole: str) -> None:
    read = Reader(whole)
    assert read.wrong == []
    assert read.open == []


def test_nothing_refers_to_another_place(whole: str) -> None:
    read = Reader(whole)
    places = [
        value
        for _, attributes in read.elements
        for name, value in attributes.items()
        if name in ("src", "href", "action", "xlink:href", "data", "poster", "srcset") and value
    ]
    assert [one for one in places if not one.startswith(("#", "data:"))] == []
    assert re.findall(r"@import|url\((?!['\"]?data:|#)", whole) == []


def test_only_the_scripts_of_the_page_may_run(whole: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', whole)
    assert policy is not None
    rules = policy[1].replace("&#39;", "'")
    assert rules.startswith("default-src 'none'; script-src 'sha256-")
    allowed = set(re.findall(r"'sha256-([^']*)'", rules))
    scripts = re.findall(r"<script>(.*?)</script>", whole, re.DOTALL)
    libraries = re.findall(r'<script [^>]*id="sections"[^>]*>(.*?)</script>', whole)
    scripts += [unpack_text(one) for one in libraries]
    hashes = {base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts}
    assert hashes == allowed


def test_no_element_has_a_handler_of_its_own(whole: str) -> None:
    names = {name for _, attributes in Reader(whole).elements for name in attributes}
    assert [name for name in names if name.startswith("on")] == []


def test_every_id_is_there_once(whole: str) -> None:
    ids = [one["id"] for _, one in Reader(whole).elements if "id" in one]
    assert len(ids) == len(set(ids))


def test_every_table_cell_has_heads(whole: str) -> None:
    heads = Reader(whole).named("th")
    assert heads
    assert all("scope" in one for one in heads)


def test_the_report_can_be_taken_out_again(whole: str) -> None:
    text = held(whole)
    assert text is not None
    assert [one["schema"] for one in json.loads(text)["documents"]] == [
        "popmodel/metrics/1",
        "popmodel/whatif/1",
        "popmodel/inspect/1",
        "popmodel/splits/1",
    ]


def test_all_that_is_called_json_is(whole: str) -> None:
    stored = re.findall(r'<script type="application/json" id="[^"]*">(.*?)</script>', whole)
    assert {"deflate_base64"} in [set(json.loads(one)) for one in stored]


def test_a_page_of_somebody_else_holds_nothing() -> None:
    assert held("<html><script>1</script></html>") is None


def test_names_are_text_wherever_they_stand() -> None:
    found = {**popmodel.metrics(STENCIL).to_dict(), "provenance": STAMP}
    usual = [tag for tag, _ in Reader(page(alone(found))).elements]
    for name in HOSTILE:
        document: dict[str, Any] = json.loads(json.dumps(found))
        document["runs"][0]["caveats"] = [name]
        for site in document["runs"][0]["call_sites"]:
            site["place"] = site["function"] = name
        written = page(Contents({**alone(document).document, "title": name}))
        read = Reader(written)
        assert read.wrong == [], name
        for tag in ("img", "script", "iframe"):
            assert len(read.named(tag)) == usual.count(tag), name
        assert held(written) is not None
        shown = "".join(read.texts)
        assert "".join(filter(str.isprintable, shown)) == shown.replace("\n", ""), name


def test_json_in_a_script_cannot_end_it() -> None:
    text = in_script({"</script><!--": "\u2028&"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"</script><!--": "\u2028&"}


def test_what_is_no_number_of_json_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        in_script({"x": float("nan")})


@pytest.mark.parametrize("script", sorted(TEMPLATES.glob("*.js")), ids=lambda path: path.name)
def test_no_text_of_a_script_goes_over_several_lines(script: Path) -> None:
    """As lines are stripped, and those that are comments left out, when a page is made."""
    assert [line for line in script.read_text().splitlines() if line.count("`") % 2] == []
    assert not re.search(r"^\s*/?\*", script.read_text(), re.MULTILINE)
