"""Commands that popmodel prints, read by its own parser."""

from __future__ import annotations

import shlex
from typing import Any

from popmodel.cli.app import _program


def parsed(line: str) -> tuple[str, dict[str, Any]]:
    """Verb (and action) and options of a command as popmodel would read it; else an error."""
    first, *words = shlex.split(line.replace("\\\n", ""))
    assert first == "popmodel"
    command, said = _program(80), []
    context = command.make_context("popmodel", [], obj=(), resilient_parsing=True)
    while hasattr(command, "resolve_command"):  # a verb, then its action if it has some
        name, command, words = command.resolve_command(context, words)
        said.append(name)
    return " ".join(said), dict(command.make_context(name, words, parent=context).params)
