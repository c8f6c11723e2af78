"""Warnings about an input, as every screen shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.report.terminal import Style, count, paragraph


def warning_lines(warnings: Sequence[Mapping[str, Any]], style: Style) -> list[str]:
    """Lines for warnings ``{"text", "count", "line"}``, after an empty one; none for none."""
    if not warnings:
        return []
    lines = ["", "warnings"]
    for warning in warnings:
        lines += paragraph(warning_text(warning), style, first=" ! ")
    return lines


def warning_text(warning: Mapping[str, Any]) -> str:
    """One warning with how often it was met and where first."""
    met = []
    if warning.get("count", 1) > 1:
        met.append(f"{count(warning['count'])} times")
    if warning.get("line") is not None:
        met.append(f"first on line {count(warning['line'])}" if met else f"line {warning['line']}")
    return f"{warning['text']}{f' ({chr(44).join(met)})' if met else ''}".replace(
        ",first", ", first"
    )
