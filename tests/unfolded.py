"""A page with what is folded up in its place, as page.js puts it back."""

from __future__ import annotations

import json
import re

from popmodel.reports.html.packing import unpack_text

_FOLDED = re.compile(
    r'<details class="detail" data-folded="(\d+)"([^>]*)>(<summary>.*?</summary>)</details>',
    re.DOTALL,
)
_ELEMENT = re.compile(r'<script type="text/plain" id="folded">([^<]*)</script>\n')


def unfolded(text: str) -> str:
    """Return the page as it was before it was folded, but for blanks before summaries."""
    element = _ELEMENT.search(text)
    if element is None:
        return text
    contents = json.loads(unpack_text(element[1]))

    def put_back(details: re.Match[str]) -> str:
        number, attributes, summary = details.groups()
        return f'<details class="detail"{attributes}>{summary}{contents[int(number)]}</details>'

    return _FOLDED.sub(put_back, text.replace(element[0], "", 1))
