"""Bring console blocks up to date: ``python tests/update_console.py [FILE]...``.

Runs every ``$ popmodel`` command of the documents (README, pages, READMEs of the examples), or of
those that are named, in the root of the repository and writes what it prints below it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from console import ROOT, documents, updated


def main(names: list[str]) -> int:
    """Update the documents; say which have changed."""
    for document in [Path(name).resolve() for name in names] or documents():
        before = document.read_text()
        try:
            after = updated(before)
        except RuntimeError as error:
            print(f"{document.relative_to(ROOT)}: {error}", file=sys.stderr)
            return 1
        if after != before:
            document.write_text(after)
            print(f"updated {document.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
