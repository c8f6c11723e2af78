"""Checks a signature as a whole: what is wrong with it, what is doubtful, and what it says."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from popmodel.documents import parse_toml
from popmodel.expressions import Expression
from popmodel.model import signature as signatures
from popmodel.model import toml_lines
from popmodel.model.constraints import (
    MOST_PROCESSES,
    Outcome,
    Possible,
    closure,
    outcomes,
    possible,
)
from popmodel.model.description import described
from popmodel.model.dimensions import Clash, Dimensions, infer
from popmodel.model.keys import key_at, label_of
from popmodel.model.signature import Signature, SignatureError
from popmodel.model.signature_reader import EXTENTS, SignatureReader
from popmodel.model.study import with_settings

CONSTRUCTS = (
    "parallel",
    "for",
    "parallel_for",
    "barrier",
    "single",
    "master",
    "critical",
    "lock",
    "atomic",
    "ordered",
    "reduction",
    "sections",
    "task",
    "taskwait",
    "private",
    "firstprivate",
    "lastprivate",
    "copyprivate",
    "copyin",
    "threadprivate",
    "static",
)
"""OpenMP constructs that popmodel measures the overhead of. A profile may know others."""

_LEVEL = re.compile(r"MEM|L[1-9]")


@dataclass(frozen=True)
class Finding:
    """A mistake or a remark.

    Attributes
    ----------
    message : str
        One line: what is wrong or doubtful.
    line, column : int or None
        Where in the file, from 1.
    hint : str or None
        One line: what to do about it.
    """

    message: str
    line: int | None = None
    column: int | None = None
    hint: str | None = None


@dataclass(frozen=True)
class Checked:
    """What is to be said about a signature.

    Attributes
    ----------
    path : str
        The file.
    application : str or None
        Its name; None if it cannot be read.
    mistakes : tuple of Finding
        What keeps it from being used, or makes it wrong, by line.
    remarks : tuple of Finding
        What is doubtful, by line.
    explained : dict or None
        What the signature says, as plain data; None if there are mistakes.
    """

    path: str
    application: str | None
    mistakes: tuple[Finding, ...]
    remarks: tuple[Finding, ...] = ()
    explained: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON types, schema ``popmodel/signature-check/1``."""
        return {"schema": "popmodel/signature-check/1", **asdict(self)}


def check(source: str | os.PathLike[str], settings: Mapping[str, float] | None = None) -> Checked:
    """Check a signature file or a bundled signature.

    Parameters
    ----------
    source : path-like
        The file, or the name of a bundled signature.
    settings : mapping of str to float, optional
        Values instead of the signature's parameters.

    Returns
    -------
    Checked
        Mistakes are in it; they are not raised.

    Raises
    ------
    SignatureError
        If the file cannot be read.
    UsageError
        If there is no such bundled signature, or no such parameter.
    """
    path, is_bundled, text = signatures.read(source)
    try:
        document = parse_toml(text, path, SignatureError)
        reader = SignatureReader(path, toml_lines.key_lines(text), mistakes=[])
        signature = reader.signature(document, is_bundled)
    except SignatureError as error:  # beyond reading as a whole
        return Checked(path, None, (_of_error(error),))
    lines, formulas = reader.lines, reader.formulas
    dimensions = infer(signature, formulas)
    mistakes = [_of_error(error) for error in reader.mistakes or ()]
    mistakes += [_of_clash(clash, dimensions, lines) for clash in dimensions.clashes]
    if reader.mistakes:  # what the formulas give would follow from what stands for those not read
        return Checked(path, signature.name or None, _in_order(mistakes))
    signature = replace(signature, params=with_settings(signature, settings or {}))
    params = {name: quantity.value for name, quantity in signature.params.items()}
    require = {path: one for path, one in formulas.items() if path[:2] == ("limits", "require")}
    runs = possible(signature, require, params)
    written = {path: one for path, one in formulas.items() if path in lines}
    results = outcomes(signature, written, params, runs)
    remarks = [*_excluding_nothing(runs, lines), *_without_value(results, written, lines)]
    remarks += [*_unused(signature, formulas, lines), *_unfamiliar(formulas, lines)]
    remarks += _too_rare(results, written, lines)
    mistakes += [*_unreachable(runs, lines), *_out_of_range(signature, results, written, lines)]
    explained = None
    if not mistakes:
        explained = described(signature, dimensions, runs, document["app"].get("description"))
    return Checked(path, signature.name, _in_order(mistakes), _in_order(remarks), explained)


def _of_error(error: SignatureError) -> Finding:
    return Finding(error.problem, error.line, error.column, error.hint)


def _of_clash(
    clash: Clash, dimensions: Dimensions, lines: Mapping[toml_lines.Path, int]
) -> Finding:
    reasons = []
    for name in clash.names:
        decision = dimensions.decisions[name]
        line = toml_lines.line_of(lines, decision.path)
        by = "" if decision.path[-1] == name else f" by {label_of(decision.path)}"
        reasons.append(f"{name} is {decision.unit.noun}{by} in line {line}")
    return Finding(
        clash.problem,
        toml_lines.line_of(lines, clash.path),
        hint="; ".join(reasons) or "numbers of things, P, T and extents of the grid have no unit",
    )


def _key(path: toml_lines.Path) -> str:
    """Name a formula within its table or item."""
    return label_of(path).partition(".")[2]


def _unreachable(runs: Possible, lines: Mapping[toml_lines.Path, int]) -> Iterator[Finding]:
    """Conditions that no number of processes meets, alone or together."""
    tried = f"1 to {MOST_PROCESSES} processes" if runs.is_complete else "any processes tried"
    if runs.threads.size > 1:
        tried += f" and 1 to {int(runs.threads[-1])} threads"
    for condition in runs.conditions:
        if not condition.holds.any():
            yield Finding(
                f"{_spoken(condition.path, condition.text)} is never met, with {tried}",
                toml_lines.line_of(lines, condition.path),
                hint="no run would be possible",
            )
    conflict = runs.first_conflict()
    if conflict is not None:
        condition, other = conflict
        partner = "the conditions before it"
        if other is not None:
            line = toml_lines.line_of(lines, other.path)
            partner = f"{_spoken(other.path, other.text)} in line {line}"
        yield Finding(
            f"{_spoken(condition.path, condition.text)} is never met together with {partner}",
            toml_lines.line_of(lines, condition.path),
            hint=f"tried with {tried}",
        )


def _spoken(path: toml_lines.Path, text: str) -> str:
    return f"the grid {text}" if path[0] == "decomp" else f"require: {text!r}"


def _excluding_nothing(runs: Possible, lines: Mapping[toml_lines.Path, int]) -> Iterator[Finding]:
    for condition in runs.conditions:
        if condition.path[0] == "limits" and condition.holds.all():
            yield Finding(
                f"require: {condition.text!r} excludes nothing",
                toml_lines.line_of(lines, condition.path),
                hint="leave it out, or correct it",
            )


def _out_of_range(
    signature: Signature,
    results: list[Outcome],
    formulas: Mapping[toml_lines.Path, Expression],
    lines: Mapping[toml_lines.Path, int],
) -> Iterator[Finding]:
    """Formulas that give nothing sensible for any possible run."""
    useless: set[str] = set()  # names that come from such a formula: their uses need no mention
    for result in results:
        expression = formulas[result.path]
        if useless & closure(signature, [expression]):
            continue
        fault = _fault(result)
        if fault is None:
            continue
        if result.path[0] == "let":
            useless.add(str(result.path[1]))
        elif result.path[0] == "decomp":
            useless |= EXTENTS
        problem, hint = fault
        yield Finding(
            f"{_key(result.path)}: {expression.text!r} {problem}",
            toml_lines.line_of(lines, result.path),
            hint=hint,
        )


def _fault(result: Outcome) -> tuple[str, str] | None:
    """Say what is wrong with all values of a formula, and what to do; None if some are right."""
    values = result.values[np.isfinite(result.values)]
    if not values.size:
        return (
            "has no finite value at the defaults",
            "look for a division by zero, a root or logarithm of a number below zero, or a power "
            "that is too large",
        )
    key = key_at(result.path)
    domain = None if key is None else key.domain_of(is_constant=True)
    if domain is None or domain.holds(values).any():
        return None
    least, most = values.min(), values.max()
    given = f"{least:g}" if least == most else f"{least:g} to {most:g}"
    return (
        f"is {given} at the defaults, for all possible processes; it should be {domain.text}",
        "look at the defaults of the parameters in it",
    )


def _without_value(
    results: list[Outcome],
    formulas: Mapping[toml_lines.Path, Expression],
    lines: Mapping[toml_lines.Path, int],
) -> Iterator[Finding]:
    """Formulas that have no value for some of the possible runs."""
    for result in results:
        finite = np.isfinite(result.values)
        if finite.any() and not finite.all():
            missing = np.unique(result.processes[~finite])
            some = ", ".join(f"{count:g}" for count in missing[:3])
            more = ", ..." if missing.size > 3 else ""
            yield Finding(
                f"{_key(result.path)}: {formulas[result.path].text!r} has no finite value "
                f"with P = {some}{more}",
                toml_lines.line_of(lines, result.path),
                hint="such as a division by zero; a condition in limits.require can exclude them",
            )


def _too_rare(
    results: list[Outcome],
    formulas: Mapping[toml_lines.Path, Expression],
    lines: Mapping[toml_lines.Path, int],
) -> Iterator[Finding]:
    """Items whose turn does not come in any execution of their loop."""
    by_path = {result.path: result.values for result in results}
    for path, every in by_path.items():
        if path[-1] != "every":
            continue
        around = path[: max(index for index, part in enumerate(path) if part == "body")]
        loop = around if around[-1] == "loop" else (*around, "loop")  # inline, or a table
        if (every > by_path[*loop, "count"]).all():
            count = formulas[*loop, "count"].text
            yield Finding(
                f"every: {formulas[path].text!r} is more than the {count!r} iterations of the "
                "loop, at the defaults",
                toml_lines.line_of(lines, path),
                hint="its turn never comes",
            )


def _unused(
    signature: Signature,
    formulas: Mapping[toml_lines.Path, Expression],
    lines: Mapping[toml_lines.Path, int],
) -> Iterator[Finding]:
    used = {name for expression in formulas.values() for name in expression.names}
    named = [("params", name) for name in signature.params]
    named += [("let", name) for name, _ in signature.let]
    for section, name in named:
        if name not in used:
            yield Finding(
                f"{name} is never used",
                toml_lines.line_of(lines, (section, name)),
                hint="leave it out, or look for the formula that should have it",
            )


def _unfamiliar(
    formulas: Mapping[toml_lines.Path, Expression], lines: Mapping[toml_lines.Path, int]
) -> Iterator[Finding]:
    """Names of constructs and cache levels that machine profiles do not have."""
    for path in formulas:
        table, _, name = _key(path).partition(".")
        if table == "constructs" and name not in CONSTRUCTS:
            near = difflib.get_close_matches(name, CONSTRUCTS, n=1)
            yield Finding(
                f"constructs: popmodel measures no overhead of {name!r}",
                toml_lines.line_of(lines, path),
                hint=f"did you mean {near[0]}?" if near else f"known: {', '.join(CONSTRUCTS)}",
            )
        if table == "bytes" and name and not _LEVEL.fullmatch(name):
            yield Finding(
                f"bytes: {name!r} is no usual level of memory",
                toml_lines.line_of(lines, path),
                hint="levels are MEM, and L1, L2 and so on as the machine profile names them",
            )


def _in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """Findings by line, each once: `if_fits` may give the same one twice."""
    once = dict.fromkeys(findings)
    return tuple(sorted(once, key=lambda finding: (finding.line or 0, finding.column or 0)))
