"""Every verb prints what its transcript says: screens, documents, answers to wrong input."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from golden.transcript import differences, names, run, stored

BRIEF: tuple[str, ...] = (
    "archives",
    "docs",
    "inspect",
    "machine",
    "metrics",
    "predict",
    "signature",
    "signature_errors",
    "study",
    "validate",
    "whatif",
)
"""Transcripts of verbs whose screens have at most `LINES` lines."""
LINES = 25


@pytest.mark.parametrize("name", BRIEF)
def test_a_screen_has_25_lines(name: str) -> None:
    long = {
        case.command: len(lines)
        for case in stored(name)
        if not re.search(r" (--all|--format|-o|--output|--help)\b", case.command)
        and len(lines := [line for line in case.text.splitlines() if line[:2] not in ("! ", "? ")])
        > LINES
    }
    assert long == {}


@pytest.mark.parametrize("name", names())
def test_transcript(name: str, tmp_path: Path) -> None:
    if name == "archives":
        pytest.importorskip("_otf2", reason="archives need the extra popmodel-hpc[otf2]")
    cases = stored(name)
    printed = run([case.command for case in cases], tmp_path)
    wrong = [
        f"$ {case.command}\n" + "\n".join(lines)
        for case, now in zip(cases, printed, strict=True)
        if (lines := differences(case.text, now.text, 1e-6))
    ]
    assert not wrong, "\n\n".join(
        [*wrong, "if this is wanted: python tests/golden/transcript.py update"]
    )


def test_numbers_are_compared_and_words_are_not_forgiven() -> None:
    assert not differences("a 1.0 b\n", "a 1.0000000000001 b\n", 1e-12)
    assert differences("a 1.0 b\n", "a 1.00001 b\n", 1e-6)
    assert differences("a 1.0 b\n", "a 1.0 c\n", 1e-6)
