"""Results as plain data: what documents hold are JSON's own types and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any


def plain(value: Any, text: Callable[[str], str] = str) -> Any:
    """Return a result as dicts, lists, text, numbers, booleans and None.

    Examples
    --------
    >>> plain({"split": (4, 2)})
    {'split': [4, 2]}
    """
    if isinstance(value, str | os.PathLike):
        return text(os.fspath(value))
    if hasattr(value, "tolist"):  # NumPy's arrays and scalars, without importing NumPy
        return value.tolist()
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {text(str(key)): plain(entry, text) for key, entry in value.items()}
    if hasattr(value, "to_dict"):
        return plain(value.to_dict(), text)
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name), text) for name in value.__dataclass_fields__}
    if isinstance(value, Iterable):
        return [plain(entry, text) for entry in value]
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def document(schema: str, **facts: Any) -> dict[str, Any]:
    """Return the document of a result: its schema and version, then what is known as plain data."""
    return {"schema": schema, **plain(facts)}


def fields_of(value: Any, *names: str, without: Collection[str] = ()) -> dict[str, Any]:
    """Return fields of a data class as plain data, in their order: all of them, or those named."""
    chosen = names or value.__dataclass_fields__
    return {name: plain(getattr(value, name)) for name in chosen if name not in without}
