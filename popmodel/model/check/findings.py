"""What is wrong with a signature or doubtful in it: each mistake and remark with its line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from popmodel.arrays import distinct
from popmodel.errors import did_you_mean
from popmodel.expressions import Expression
from popmodel.machine.constructs import CONSTRUCTS
from popmodel.model.check.constraints import Outcome, Possible
from popmodel.model.check.dimensions import Clash, Dimensions
from popmodel.model.grammar.reading import SignatureError
from popmodel.model.grammar.toml_lines import Path, line_of
from popmodel.model.run.placement import MOST_PROCESSES
from popmodel.model.signature.names import closure
from popmodel.model.signature.program import EXTENTS, Signature
from popmodel.model.signature.tables import key_at, label_of
from popmodel.values import dataclass

Lines: TypeAlias = Mapping[Path, int]
Formulas: TypeAlias = Mapping[Path, Expression]

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


def of_error(error: SignatureError) -> Finding:
    """Return what kept a part of the signature from being read."""
    return Finding(error.problem, error.line, error.column, error.hint)


def of_clash(clash: Clash, dimensions: Dimensions, lines: Lines) -> Finding:
    """Return units that clash, with what is known of the names and where it is known from."""
    reasons = []
    for name in clash.names:
        decision = dimensions.decisions[name]
        line = line_of(lines, decision.path)
        by = "" if decision.path[-1] == name else f"{label_of(decision.path)}, "
        reasons.append(f"{name} is {decision.unit.noun} ({by}line {line})")
    return Finding(
        clash.problem,
        line_of(lines, clash.path),
        hint="; ".join(reasons) or "counts, P, T and the extents of the grid have no unit",
    )


def unreachable(runs: Possible, lines: Lines) -> Iterator[Finding]:
    """Conditions that no number of processes meets, alone or together."""
    tried = f"1 to {MOST_PROCESSES} processes"
    if not runs.is_complete:
        tried = "a selection of process counts"
    if runs.threads.size > 1:
        tried += f" and 1 to {int(runs.threads[-1])} threads"
    for condition in runs.conditions:
        if not condition.holds.any():
            yield Finding(
                f"{_never(condition.path, condition.text)} (tried {tried})",
                line_of(lines, condition.path),
                hint="no run is possible",
            )
    conflict = runs.first_conflict()
    if conflict is not None:
        condition, other = conflict
        partner = "the conditions before it"
        if other is not None:
            line = line_of(lines, other.path)
            partner = f"{_spoken(other.path, other.text)} in line {line}"
        yield Finding(
            f"{_never(condition.path, condition.text)} together with {partner}",
            line_of(lines, condition.path),
            hint=f"no run is possible (tried {tried})",
        )


def _never(path: Path, text: str) -> str:
    holds = "never has P processes" if path[0] == "decomp" else "never holds"
    return f"{_spoken(path, text)} {holds}"


def _spoken(path: Path, text: str) -> str:
    return f"the grid {text}" if path[0] == "decomp" else f"require: {text!r}"


def excluding_nothing(runs: Possible, lines: Lines) -> Iterator[Finding]:
    """Conditions that every run meets."""
    for condition in runs.conditions:
        if condition.path[0] == "limits" and condition.holds.all():
            yield Finding(
                f"require: {condition.text!r} excludes nothing",
                line_of(lines, condition.path),
                hint="remove or correct it",
            )


def out_of_range(
    signature: Signature,
    results: list[Outcome],
    formulas: Formulas,
    lines: Lines,
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
            line_of(lines, result.path),
            hint=hint,
        )


def _fault(result: Outcome) -> tuple[str, str] | None:
    """Say what is wrong with all values of a formula, and what to do; None if some are right."""
    values = result.values[np.isfinite(result.values)]
    if not values.size:
        return (
            "has no finite value with these parameters",
            "look for a division by zero, the root or logarithm of a negative number, or a power "
            "that is too large",
        )
    key = key_at(result.path)
    domain = None if key is None else key.domain_of(is_constant=True)
    if domain is None or np.any(domain.holds(values)):
        return None
    least, most = values.min(), values.max()
    given = f"{least:g}" if least == most else f"{least:g} to {most:g}"
    return (
        f"is {given} with these parameters, for every P and T; must be {domain.text}",
        "check the parameters in it",
    )


def without_value(
    results: list[Outcome],
    formulas: Formulas,
    lines: Lines,
) -> Iterator[Finding]:
    """Formulas that have no value for some of the possible runs."""
    for result in results:
        missing = ~np.isfinite(result.values)
        if missing.any() and not missing.all():
            yield Finding(
                f"{_key(result.path)}: {formulas[result.path].text!r} has no finite value "
                f"for {_where(result, missing)}",
                line_of(lines, result.path),
                hint="for example a division by zero; limits.require can exclude these runs",
            )


def sometimes_out_of_range(
    results: list[Outcome],
    formulas: Formulas,
    lines: Lines,
) -> Iterator[Finding]:
    """Formulas whose value makes no sense for some of the possible runs."""
    for result in results:
        key = key_at(result.path)
        domain = None if key is None else key.domain
        if domain is None:
            continue
        finite = np.isfinite(result.values)
        outside = finite & ~np.asarray(domain.holds(result.values), dtype=bool)
        if outside.any() and (finite & ~outside).any():
            first = result.values[outside][0]
            yield Finding(
                f"{_key(result.path)}: {formulas[result.path].text!r} is {first:g} "
                f"for {_where(result, outside)}; must be {domain.text}",
                line_of(lines, result.path),
                hint="limits.require can exclude these runs",
            )


def _where(result: Outcome, those: NDArray[np.bool_]) -> str:
    """Name the runs by their threads if these alone decide, else by their processes."""
    threads = distinct(result.threads[those])
    decide = np.array_equal(np.isin(result.threads, threads), those)
    numbers = threads if decide else distinct(result.processes[those])
    some = ", ".join(f"{count:g}" for count in numbers[:3])
    return f"{'T' if decide else 'P'} = {some}{', ...' if numbers.size > 3 else ''}"


def too_rare(
    results: list[Outcome],
    formulas: Formulas,
    lines: Lines,
) -> Iterator[Finding]:
    """Items whose turn does not come in any execution of their loop."""
    by_path = {result.path: result.values for result in results}
    for path, every in by_path.items():
        if path[-1] != "every":
            continue
        around = path[: max(index for index, part in enumerate(path) if part == "body")]
        # an inline body is inside the table of its loop, another one beside it
        loop = next(one for one in by_path if one[-1] == "count" and around in (one[:-1], one[:-2]))
        if (every > by_path[loop]).all():
            count = formulas[loop].text
            yield Finding(
                f"every: {formulas[path].text!r} exceeds the {count!r} iterations of the loop "
                "with these parameters",
                line_of(lines, path),
                hint="the item is never executed",
            )


def unused(
    signature: Signature,
    formulas: Formulas,
    lines: Lines,
) -> Iterator[Finding]:
    """Parameters and names of let that no formula uses."""
    used = {name for expression in formulas.values() for name in expression.names}
    named = [("params", name) for name in signature.params]
    named += [("let", name) for name, _ in signature.let]
    for section, name in named:
        if name not in used:
            yield Finding(
                f"{name} is never used",
                line_of(lines, (section, name)),
                hint="remove it, or use it in a formula",
            )


def unfamiliar(formulas: Formulas, lines: Lines) -> Iterator[Finding]:
    """Names of constructs and cache levels that machine profiles do not have."""
    for path in formulas:
        table, _, name = _key(path).partition(".")
        if table == "constructs" and name not in CONSTRUCTS:
            yield Finding(
                f"constructs: popmodel does not measure the overhead of {name!r}",
                line_of(lines, path),
                hint=did_you_mean(name, CONSTRUCTS, f"known: {', '.join(CONSTRUCTS)}"),
            )
        if table == "bytes" and name and not _LEVEL.fullmatch(name):
            yield Finding(
                f"bytes: {name!r} is not a usual memory level",
                line_of(lines, path),
                hint="levels are MEM and L1, L2, ... as in the machine profile",
            )


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings by line, each once: the two branches of ``if_fits`` may give the same one."""
    once = dict.fromkeys(findings)
    return tuple(sorted(once, key=lambda finding: (finding.line or 0, finding.column or 0)))


def _key(path: Path) -> str:
    """Name a formula within its table or item."""
    return label_of(path).partition(".")[2]
