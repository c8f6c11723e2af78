"""What a page shows."""

from typing import Any

import pytest

from popmodel.reports.html.contents import Contents, alone


def document(*paths: str) -> dict[str, Any]:
    inputs = [{"path": path, "size": 1, "head_sha256": "0"} for path in paths]
    return {"schema": "popmodel/metrics/1", "provenance": {"inputs": inputs}}


@pytest.mark.parametrize(
    ("paths", "title"),
    [
        ((), "popmodel metrics"),
        (("runs/a.prv",), "popmodel metrics: a.prv"),
        (("a.prv", "b.prv", "c.prv"), "popmodel metrics: a.prv and 2 more"),
    ],
)
def test_a_result_alone_is_named_by_its_inputs(paths: tuple[str, ...], title: str) -> None:
    assert alone(document(*paths)).title == title


def test_documents_are_found_by_their_command() -> None:
    found = alone(document("a"))
    assert found.of("metrics") == found.documents
    assert found.of("splits") == ()


def test_a_report_is_its_own_page() -> None:
    report = {"schema": "popmodel/report/1", "title": "x", "documents": [], "left_out": []}
    assert alone(report) == Contents(report)
