"""What an application does, as expressions of its parameters, P and T.

The format is TOML, schema ``popmodel/signature/1``; `load` reads a file or a bundled signature.
"""

from __future__ import annotations

import os
from typing import Any

from popmodel.documents import parse_toml
from popmodel.model.check.dimensions import infer
from popmodel.model.check.findings import of_clash
from popmodel.model.grammar import toml_lines
from popmodel.model.grammar.reading import SignatureError
from popmodel.model.signature.files import bundled, read
from popmodel.model.signature.program import Signature
from popmodel.model.signature.reader import SignatureReader


def summaries() -> list[dict[str, Any]]:
    """Return name, description, parameters and path of each bundled signature."""
    found = []
    for name in bundled():
        path, _, text = read(name)
        document = parse_toml(text, path, SignatureError)
        params = {key: one.value for key, one in load(name).params.items()}
        about = document["app"].get("description", "")
        found.append({"name": name, "description": about, "params": params, "path": path})
    return found


def load(source: str | os.PathLike[str]) -> Signature:
    """Read a signature from a file, or a bundled one by its name.

    Raises
    ------
    SignatureError
        If the file cannot be read or is not a valid signature; the message names file and line.
    UsageError
        If neither a file nor a bundled signature has that name.

    Examples
    --------
    >>> import popmodel
    >>> popmodel.load_signature("stencil3d")
    <Signature stencil3d (bundled): 8 items, N=512 steps=100>
    """
    path, is_bundled, text = read(source)
    return from_text(text, path, is_bundled=is_bundled)


def from_text(
    text: str, path: str = "signature", *, is_bundled: bool = False, checked: bool = True
) -> Signature:
    """Read a signature from its TOML text; units need no check in what popmodel has just made."""
    document = parse_toml(text, path, SignatureError)
    reader = SignatureReader(path, toml_lines.key_lines(text))
    signature = reader.signature(document, is_bundled)
    if not checked:
        return signature
    dimensions = infer(signature, reader.formulas)
    for clash in dimensions.clashes:  # a number in the wrong unit would pass for a prediction
        found = of_clash(clash, dimensions, reader.lines)
        raise SignatureError(path, found.message, line=found.line, hint=found.hint)
    return signature
