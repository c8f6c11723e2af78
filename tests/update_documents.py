"""Bring the documents up to date: ``python tests/update_documents.py [FILE]...``.

Runs every ``$ popmodel`` command of the documents (README, pages, READMEs of the examples), or of
those that are named, in the root of the repository and writes what it prints below it. Writes the
pages that follow from data: the metrics of the families, the keys of signatures, and the units of
machine parameters.
"""

from __future__ import annotations

import sys
from pathlib import Path

import grammar_page
import metrics_page
import parameters_page
from console import ROOT, documents, updated


def main(names: list[str]) -> int:
    """Update the documents; say which have changed."""
    for document in [Path(name).resolve() for name in names] or [
        metrics_page.PAGE,
        grammar_page.PAGE,
        *documents(),
    ]:
        before = document.read_text() if document.exists() else ""
        try:
            after = updated(_from_data(document, before))
        except RuntimeError as error:
            print(f"{document.relative_to(ROOT)}: {error}", file=sys.stderr)
            return 1
        if after != before:
            document.write_text(after)
            print(f"updated {document.relative_to(ROOT)}")
    return 0


def _from_data(document: Path, before: str) -> str:
    """What of a page follows from data is written anew."""
    if document == metrics_page.PAGE:
        return metrics_page.page()
    if document == grammar_page.PAGE:
        return grammar_page.page()
    return parameters_page.with_parameters(before) if document == parameters_page.PAGE else before


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
