"""Shell commands in lines that can be pasted: to launch a run, to measure what is uncertain."""

from __future__ import annotations

from popmodel.report.terminal import shell_lines, shell_words


def launch_lines(command: str, width: int) -> list[str]:
    """A shell command in lines of at most `width` columns that can be pasted as they are.

    Words that fit nowhere stand on a line of their own.
    """
    parts = [
        shell_lines(shell_words(given), width)
        for given in command.replace("\\\n", "\n").split("\n")
    ]
    return [
        line if part is parts[-1] or line.endswith("\\") else f"{line} \\"
        for part in parts
        for line in part
    ]
