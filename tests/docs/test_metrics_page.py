"""The page of metrics says what the families say."""

from __future__ import annotations

import metrics_page

from popmodel import load_families


def test_the_page_is_current() -> None:
    assert metrics_page.PAGE.read_text() == metrics_page.page(), (
        "run python tests/update_documents.py"
    )


def test_every_metric_is_on_the_page() -> None:
    text = metrics_page.PAGE.read_text()
    for family in load_families().values():
        for id in family.metrics:
            assert f"\n`{family.id}.{id}`\n" in text
