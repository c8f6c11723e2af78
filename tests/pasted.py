"""Commands that popmodel prints, read by its own parser."""

from __future__ import annotations

import shlex
from importlib import import_module
from typing import Any

import typer
from typer.main import get_command


def parsed(line: str) -> tuple[str, dict[str, Any]]:
    """Verb and options of a command as popmodel would read it; an error if it would not."""
    first, verb, *words = shlex.split(line.replace("\\\n", ""))
    assert first == "popmodel"
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(verb)(import_module(f"popmodel.cli.{verb}").command)
    return verb, dict(get_command(single).make_context(verb, words).params)
