"""What is folded up on a page is kept deflated: it is most of the text, and seldom opened.

The content of every ``<details class="detail">`` is taken out and put into one text, in order;
page.js puts it back before anything is drawn. Without scripts only the summaries are there, with a
line that says so.
"""

from __future__ import annotations

import json
import re

from popmodel.reports.html.packing import pack_text, unpack_text

_DETAILS = re.compile(
    r'<details class="detail"([^>]*)>\s*(<summary>.*?</summary>)((?:(?!</?details).)*)</details>',
    re.DOTALL,
)
_FOLDED = re.compile(
    r'<details class="detail" data-folded="(\d+)"([^>]*)>(<summary>.*?</summary>)</details>',
    re.DOTALL,
)
_ELEMENT = re.compile(r'<script type="text/plain" id="folded">([^<]*)</script>\n')
_PLACE = "</main>\n"


def folded(text: str) -> str:
    """Return a page without the contents of its details, which stand in one text after them."""
    contents: list[str] = []

    def take(found: re.Match[str]) -> str:
        attributes, summary, content = found.groups()
        contents.append(content)
        return (
            f'<details class="detail" data-folded="{len(contents) - 1}"{attributes}>'
            f"{summary}</details>"
        )

    left = _DETAILS.sub(take, text)
    if not contents:
        return text
    packed = pack_text(json.dumps(contents, allow_nan=False))
    element = f'<script type="text/plain" id="folded">{packed}</script>\n'
    return left.replace(_PLACE, f"{_PLACE}{element}", 1)


def unfolded(text: str) -> str:
    """Return the page as it was before `folded`, but for blanks before summaries."""
    found = _ELEMENT.search(text)
    if found is None:
        return text
    contents = json.loads(unpack_text(found[1]))

    def put_back(one: re.Match[str]) -> str:
        number, attributes, summary = one.groups()
        return f'<details class="detail"{attributes}>{summary}{contents[int(number)]}</details>'

    return _FOLDED.sub(put_back, text.replace(found[0], "", 1))
