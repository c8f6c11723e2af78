"""From source code to the signature of a program."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from popmodel.base.errors import UsageError
from popmodel.base.plain import document
from popmodel.base.units import plural
from popmodel.base.values import dataclass
from popmodel.model import signatures
from popmodel.reports.result import Result, save_text
from popmodel.reports.source_signature import VIEWS
from popmodel.source import is_source, signature_of_source

if TYPE_CHECKING:
    from popmodel.reports.views import Views
    from popmodel.signatures.document import TomlItem


__all__ = ["SourceSignature", "is_source", "signature_from_source"]


@dataclass(frozen=True)
class SourceSignature(Result):
    """A signature that was read from source code, as returned by `signature_from_source`."""

    name: str  # Of the application
    text: str  # The signature as TOML
    files: tuple[str, ...]  # Source files
    items: Counter[str]  # Items of the program by kind
    unknown: tuple[tuple[str, str, str], ...]  # Name, what it is in the source, and where
    notes: tuple[str, ...]  # What was assumed, or left out
    path: str | None = None  # Where it was written

    def __repr__(self) -> str:
        items = plural(self.items.total(), "item")
        return f"<Signature of {self.name} from {plural(len(self.files), 'source file')}: {items}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the signature to a file, replacing an existing one."""
        save_text(path, self.text, signatures.load)

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/source/1``, without provenance."""
        return document(
            "popmodel/source/1",
            application=self.name,
            path=self.path,
            files=list(self.files),
            items=dict(self.items),
            unknown=[
                {"name": name, "source": what, "place": place} for name, what, place in self.unknown
            ],
            notes=list(self.notes),
        )

    @property
    def views(self) -> Views:
        return VIEWS


def signature_from_source(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    name: str | None = None,
    compiler_options: Sequence[str] = (),
) -> SourceSignature:
    """Read from the source of a program what it does: loops, messages, OpenMP.

    Nothing is run or measured: counts are formulas of parameters, P and T, and times come from the
    machine when the signature is used. It takes the extra ``source`` of the package.

    Parameters
    ----------
    files : path, or several of them
        Source files of C or C++, one of them with ``main``.
    name : str, optional
        Of the application; default: that of the first file.
    compiler_options : sequence of str
        Options of the compiler, such as ``["-Iinclude", "-DUSE_MPI"]``.

    Returns
    -------
    SourceSignature
        With `text`, the file, where ``"?"`` stands for what the source does not say, and `unknown`.

    Raises
    ------
    FileError
        If a file cannot be read.
    PopmodelError
        If libclang is not installed.
    UsageError
        If the files define no ``main``, or several.

    Examples
    --------
    >>> import popmodel
    >>> found = popmodel.signature_from_source("examples/cannon/cannon.c")  # doctest: +SKIP
    >>> found.unknown  # doctest: +SKIP
    ()
    """
    paths = (
        [os.fspath(files)]
        if isinstance(files, str | os.PathLike)
        else [os.fspath(file) for file in files]
    )
    if not paths:
        raise UsageError("no source file given", "name all files of one program")
    called = name or Path(paths[0]).stem
    text, draft = signature_of_source(paths, called, compiler_options)
    unknown = [(key, what, str(place)) for key, (what, place) in draft.open.items()]
    unknown += [
        (key, "parameter", noted.note) for key, noted in draft.given.items() if noted.value == "?"
    ]
    kinds = Counter(item.kind for item in _all(draft.program))
    return SourceSignature(called, text, tuple(paths), kinds, tuple(unknown), tuple(draft.notes))


def _all(items: Iterable[TomlItem]) -> Iterable[TomlItem]:
    for item in items:
        yield item
        yield from _all(item.body)
