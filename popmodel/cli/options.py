"""Options that several verbs share, each declared once."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from popmodel.report.render import Format

FormatOption: TypeAlias = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="How the result is written. Without it the suffix of -o decides, else table.",
        show_default=False,
    ),
]
OutputOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write to FILE (.json, .csv, .md or .txt) instead of standard output (-).",
        show_default=False,
    ),
]
ForceOption: TypeAlias = Annotated[
    bool, typer.Option("--force", help="Replace FILE if it exists.", show_default=False)
]
CacheOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--no-cache",
        help="Parse the trace anew and keep no parsed copy of it.",
        show_default=False,
    ),
]
ApplicationOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--application", min=1, metavar="N", help="Which application of the trace, from 1."
    ),
]
