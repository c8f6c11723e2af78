"""What a program said before it failed, among the words of its launcher."""

from __future__ import annotations

from pathlib import Path

import pytest

from popmodel.campaign.traced import _said

RULE = "-" * 60
OF_THE_LAUNCHER = "prterun detected that a process exited with non-zero status\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"app: only squares\n{RULE}\n{OF_THE_LAUNCHER}{RULE}\n", "app: only squares"),
        (f"{RULE}\n{OF_THE_LAUNCHER}app: only squares\n{RULE}\n", "app: only squares"),
        (f"{RULE}\n{OF_THE_LAUNCHER}app: only squares\n", "app: only squares"),
        (f"it is no square\n{RULE}\n{OF_THE_LAUNCHER}{RULE}\n", "it is no square"),
        (f"{RULE}\n{OF_THE_LAUNCHER}{RULE}\n", ""),
    ],
)
def test_the_words_of_the_program_are_found(tmp_path: Path, text: str, said: str) -> None:
    log = tmp_path / "2x1.log"
    log.write_text(text)
    assert _said(log, Path("bin/app")) == said


def test_nothing_is_said_where_there_is_no_output(tmp_path: Path) -> None:
    assert _said(tmp_path / "2x1.log", None) == ""
