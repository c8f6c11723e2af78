"""Bring the documents up to date: ``python tests/update_documents.py [FILE]...``.

Runs every ``$ popmodel`` command of the documents (README, pages, READMEs of the examples), or of
those that are named, in the root of the repository and writes what it prints below it. Writes the
pages that follow from data: the metrics of the families, the keys of signatures, the units of
machine parameters, and the errors of laws; and the signature of the example trace.
"""

from __future__ import annotations

import sys
from pathlib import Path

import example_signature
import grammar_page
import laws_page
import metrics_page
import parameters_page
from console import ROOT, documents, updated


def main(names: list[str]) -> int:
    """Update the documents; say which have changed."""
    written = {
        metrics_page.PAGE: lambda _: metrics_page.page(),
        grammar_page.PAGE: lambda _: grammar_page.page(),
        parameters_page.PAGE: parameters_page.with_parameters,
        laws_page.PAGE: laws_page.with_laws,
        example_signature.FILE: lambda _: example_signature.text(),
    }
    for document in [Path(name).resolve() for name in names] or dict.fromkeys(
        [*written, *documents()]
    ):
        before = document.read_text() if document.exists() else ""
        try:
            after = updated(written[document](before) if document in written else before)
        except RuntimeError as error:
            print(f"{document.relative_to(ROOT)}: {error}", file=sys.stderr)
            return 1
        if after != before:
            document.write_text(after)
            print(f"updated {document.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
