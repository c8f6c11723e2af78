"""The quantities of the machine on the page of signatures, which follow from the register."""

from __future__ import annotations

from popmodel.model.signature.keys import CLOCK, MACHINE, NAMED, PAGE

_HEAD = "| name | unit | meaning |\n|---|---|---|\n"


def page() -> str:
    """The page as it should be: its text and the tables of keys as they are."""
    text = PAGE.read_text()
    assert text.count(_HEAD) == 1, "the page has no table of quantities"
    rows = (
        f"| `{MACHINE}.{path}` | {parameter.unit} | "
        f"{'clock with the active cores of the run' if path == CLOCK else parameter.meaning} |\n"
        for path, parameter in NAMED.items()
    )
    return text[: text.index(_HEAD)] + _HEAD + "".join(rows)
