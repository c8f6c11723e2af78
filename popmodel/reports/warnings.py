"""Caveats and warnings about an input, as every screen shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.base.units import count
from popmodel.reports.blocks import Role, Section, titled


def warned(warnings: Sequence[Mapping[str, Any]]) -> Section:
    """Warnings ``{"text", "count", "line"}`` about an input; empty for none."""
    return titled("warnings", [warning_text(one) for one in warnings], Role.WARNING)


def warning_text(warning: Mapping[str, Any]) -> str:
    """One warning with how often it was met and where first."""
    times, line = warning.get("count", 1), warning.get("line")
    met = [f"{count(times)} times"] if times > 1 else []
    if line is not None:
        met.append(f"{'first on ' if met else ''}line {count(line)}")
    return f"{warning['text']} ({', '.join(met)})" if met else str(warning["text"])
