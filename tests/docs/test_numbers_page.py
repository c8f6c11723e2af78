"""The page of what numbers rest on says how far each law may be off."""

from __future__ import annotations

from laws_page import PAGE, with_laws

from popmodel.model.symbols import LAWS


def test_the_page_has_every_law_with_its_error() -> None:
    page = PAGE.read_text()
    assert with_laws(page) == page
    assert page.count("| `law.") == len(LAWS)
