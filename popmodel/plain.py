"""Results as plain data: what documents hold are JSON's own types and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = ["LEFT_OUT", "called", "document", "fields_of", "plain"]

_KEY = "key"
LEFT_OUT: Mapping[str, Any] = {_KEY: None}
"""Metadata of a field that is in no document."""


def called(key: str) -> Mapping[str, Any]:
    """Metadata of a field that documents have under another name."""
    return {_KEY: key}


def plain(value: Any, text: Callable[[str], str] = str) -> Any:
    """Return a result as dicts, lists, text, numbers, booleans and None.

    Parameters
    ----------
    value : object
        A data class has its fields as keys, in their order, but for what their metadata say
        (`called`, `LEFT_OUT`); one that has more or other keys gives a mapping of them by its
        method ``to_dict``. Mappings become dicts, arrays and other iterables lists.
    text : callable, optional
        What is done to every text, keys included.

    Raises
    ------
    TypeError
        If something has no form in JSON.

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
        return plain(fields_of(value), text)
    if isinstance(value, Iterable):
        return [plain(entry, text) for entry in value]
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def document(schema: str, **facts: Any) -> dict[str, Any]:
    """Return the document of a result: its schema and version, then what is known as plain data."""
    return {"schema": schema, **plain(facts)}


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a data class that documents have, by their names there, as they are.

    For a method ``to_dict`` that adds to them.
    """
    keys = {
        name: field.metadata.get(_KEY, name) for name, field in value.__dataclass_fields__.items()
    }
    return {key: getattr(value, name) for name, key in keys.items() if key is not None}
