"""Data classes and named tuples that are cheap to define: a command imports some hundreds of them.

The standard library's `dataclasses.dataclass` compiles six methods for each frozen class when it is
defined, 0.4 ms in all. Here ``__init__`` is compiled when the first object is made, and the others
are the same functions for all classes: 0.05 ms. All that `dataclasses` does with a class, such as
`dataclasses.replace`, works as ever. Only ``repr`` is shorter: it shows the size of what is large.
`typing.NamedTuple` compiles the annotation of every field, 0.2 ms for a class; here they stay text.
"""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple", "cut", "dataclass"]

_set = object.__setattr__

LONGEST = 400
"""Characters of a `repr`: some lines of a terminal."""
_LONGEST_VALUE = 100
_ENTRIES = 16

if TYPE_CHECKING:
    from dataclasses import dataclass
    from typing import NamedTuple
else:

    class _NamedTuples(type):
        """Makes a named tuple of the annotations, defaults and methods of a class."""

        def __new__(cls, name: str, _: tuple[type, ...], namespace: dict[str, Any]) -> type:
            annotations = namespace.get("__annotations__", {})
            defaults = [namespace.pop(field) for field in annotations if field in namespace]
            made = collections.namedtuple(
                name, annotations, defaults=defaults, module=namespace["__module__"]
            )
            for key, value in namespace.items():
                if key not in ("__module__", "__qualname__", "__classcell__"):
                    setattr(made, key, value)
            return made

    NamedTuple = type.__new__(_NamedTuples, "NamedTuple", (), {})
    """As `typing.NamedTuple`."""

    def dataclass(
        cls: type | None = None,
        /,
        *,
        frozen: bool = False,
        eq: bool = True,
        kw_only: bool = False,
        **others: Any,
    ) -> Any:
        """As `dataclasses.dataclass`; cheap where the class is frozen and little else is asked."""
        asked = {"eq": eq, "kw_only": kw_only, **others}
        if cls is None:
            return partial(dataclass, frozen=frozen, **asked)
        if not frozen or others:
            return dataclasses.dataclass(frozen=frozen, **asked)(cls)
        # finds the fields
        dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
        made = _methods(cls, dataclasses.fields(cls), eq)
        for name, method in made.items():
            if cls.__dict__.get(name) is None:  # a class with its own __eq__ has None as __hash__
                method.__qualname__ = f"{cls.__qualname__}.{name}"
                setattr(cls, name, method)
        return cls


def _methods(
    cls: type[Any], fields: tuple[dataclasses.Field[Any], ...], eq: bool
) -> dict[str, Callable[..., Any]]:
    names = frozenset(field.name for field in fields)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        made = _initializer(cls, fields)
        cls.__init__ = made
        made(self, *args, **kwargs)

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        _set(self, name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        object.__delattr__(self, name)

    found: dict[str, Callable[..., Any]] = {
        "__init__": __init__,
        "__setattr__": __setattr__,
        "__delattr__": __delattr__,
        "__repr__": _shown([field.name for field in fields if field.repr]),
    }
    if eq:
        found |= _compared([field.name for field in fields if field.compare])
    return found


def _shown(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:
        values = ", ".join(f"{name}={_brief(getattr(self, name))}" for name in names)
        return cut(f"{type(self).__qualname__}({values})")

    return __repr__


def _brief(value: Any) -> str:
    """A value of a field as a person wants to see it: arrays and large collections by their size.

    What holds a whole trace would fill the screen of whoever types its name.
    """
    if hasattr(value, "dtype") and getattr(value, "ndim", None):
        return f"<{value.dtype}[{', '.join(map(str, value.shape))}]>"
    large = isinstance(value, Mapping | Sequence | Set) and not isinstance(value, str | bytes)
    if large and len(value) > _ENTRIES:
        return f"<{type(value).__name__} of {len(value)}>"
    text = repr(value)
    if large and len(text) > _LONGEST_VALUE:
        return f"<{type(value).__name__} of {len(value)}>"
    return cut(text, _LONGEST_VALUE)


def cut(text: str, length: int = LONGEST) -> str:
    """A `repr` of at most some characters: names and paths may be of any length."""
    return text if len(text) <= length else f"{text[: length - 4]}...{text[-1]}"


def _compared(names: list[str]) -> dict[str, Callable[..., Any]]:
    """Comparison and hash by the values of some fields, as of a tuple of them."""
    get: Callable[[Any], tuple[Any, ...]]
    if len(names) > 1:
        get = attrgetter(*names)
    else:

        def get(value: Any) -> tuple[Any, ...]:
            return tuple(getattr(value, name) for name in names)

    def __eq__(self: Any, other: object) -> Any:
        return get(self) == get(other) if type(self) is type(other) else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(get(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _initializer(cls: type, fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    """Compile ``__init__``, which takes a value for every field in order."""
    known: dict[str, Any] = {"_set": _set}
    parameters, lines = [], []
    for field in sorted(fields, key=lambda one: bool(one.kw_only)):
        if field.kw_only and "*" not in parameters:
            parameters.append("*")
        name = value = field.name
        if field.default is not dataclasses.MISSING:
            known[f"_of_{name}"] = field.default
            parameters.append(f"{name}=_of_{name}")
        elif field.default_factory is not dataclasses.MISSING:
            known[f"_of_{name}"] = field.default_factory
            parameters.append(f"{name}=_of_{name}")
            value = f"_of_{name}() if {name} is _of_{name} else {name}"
        else:
            parameters.append(name)
        lines.append(f" _set(_self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append(" _self.__post_init__()")
    text = f"def __init__(_self, {', '.join(parameters)}):\n" + "\n".join(lines or [" pass"])
    exec(text, known)
    made: Callable[..., None] = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


# Results as plain data: what documents hold are JSON's own types and nothing else.


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
