"""Checks a signature as a whole: what is wrong with it, what is doubtful, and what it says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from popmodel.documents import parse_toml
from popmodel.model.check import findings
from popmodel.model.check.constraints import outcomes, possible
from popmodel.model.check.description import described
from popmodel.model.check.dimensions import infer
from popmodel.model.check.findings import SignatureFinding
from popmodel.model.grammar import toml_lines
from popmodel.model.grammar.reading import SignatureError
from popmodel.model.signature.files import read
from popmodel.model.signature.reader import SignatureReader
from popmodel.simulator.program import unmodelled_calls
from popmodel.values import dataclass


@dataclass(frozen=True)
class CheckedSignature:
    """What is to be said about a signature."""

    path: str  # The file
    application: str | None  # Its name; None if it cannot be read
    mistakes: tuple[
        SignatureFinding, ...
    ]  # What keeps it from being used, or makes it wrong, by line
    remarks: tuple[SignatureFinding, ...] = ()  # What is doubtful, by line
    # What the signature says, as plain data; None if there are mistakes.
    explained: dict[str, Any] | None = None
    caveats: tuple[str, ...] = ()  # What of the program it does not contain

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON types, schema ``popmodel/signature-check/1``."""
        return {"schema": "popmodel/signature-check/1", **asdict(self)}


def check(
    source: str | os.PathLike[str], settings: Mapping[str, float] | None = None
) -> CheckedSignature:
    """Check a signature file or a bundled signature."""
    path, is_bundled, text = read(source)
    try:
        document = parse_toml(text, path, SignatureError)
        reader = SignatureReader(path, toml_lines.key_lines(text), mistakes=[])
        signature = reader.signature(document, is_bundled)
    except SignatureError as error:  # beyond reading as a whole
        return CheckedSignature(path, None, (findings.of_error(error),))
    lines, formulas = reader.lines, reader.formulas
    dimensions = infer(signature, formulas)
    mistakes = [findings.of_error(error) for error in reader.mistakes or ()]
    mistakes += [findings.of_clash(clash, dimensions, lines) for clash in dimensions.clashes]
    if reader.mistakes:  # what the formulas give would follow from what stands for those not read
        return CheckedSignature(path, signature.name or None, findings.in_order(mistakes))
    signature = signature.with_settings(settings or {})
    params = {name: quantity.value for name, quantity in signature.inputs.items()}
    require = {path: one for path, one in formulas.items() if path[:2] == ("limits", "require")}
    runs = possible(signature, require, params)
    written = {path: one for path, one in formulas.items() if path in lines}
    results = outcomes(signature, written, params, runs)
    finder = findings.Finder(signature, lines, formulas, runs, results)
    mistakes += finder.mistakes()
    remarks = findings.in_order(finder.remarks())
    explained = None
    if not mistakes:
        explained = described(signature, dimensions, runs, document["app"].get("description"))
    caveats = tuple(unmodelled_calls(signature.not_modelled))
    found = findings.in_order(mistakes)
    return CheckedSignature(path, signature.name, found, remarks, explained, caveats)
