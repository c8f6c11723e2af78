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
from popmodel.machine.parameter import CONSTRUCTS
from popmodel.model.check.constraints import Condition, ConstraintOutcome, Possible
from popmodel.model.check.dimensions import Clash, Dimensions
from popmodel.model.grammar.reading import OPEN, SignatureError
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
class SignatureFinding:
    """A mistake or a remark."""

    message: str  # One line: what is wrong or doubtful
    # Where in the file, from 1.
    line: int | None = None
    column: int | None = None
    hint: str | None = None  # One line: what to do about it


def of_error(error: SignatureError) -> SignatureFinding:
    """Return what kept a part of the signature from being read."""
    return SignatureFinding(error.problem, error.line, error.column, error.hint)


def of_clash(clash: Clash, dimensions: Dimensions, lines: Lines) -> SignatureFinding:
    """Return units that clash, with what is known of the names and where it is known from."""
    reasons = []
    for name in clash.names:
        decision = dimensions.decisions[name]
        line = line_of(lines, decision.path)
        by = "" if decision.path[-1] == name else f"{label_of(decision.path)}, "
        reasons.append(f"{name} is {decision.unit.noun} ({by}line {line})")
    return SignatureFinding(
        clash.problem,
        line_of(lines, clash.path),
        hint="; ".join(reasons) or "counts, P, T and the extents of the grid have no unit",
    )


@dataclass(frozen=True)
class Finder:
    """Looks for what is wrong or doubtful in a signature that was read."""

    signature: Signature  # With the values of its parameters
    lines: Lines  # Where its keys stand
    formulas: Formulas  # All its formulas, defaults included
    runs: Possible  # What its conditions allow
    results: list[ConstraintOutcome]  # What the formulas that are written give there

    def mistakes(self) -> Iterator[SignatureFinding]:
        """What is wrong."""
        yield from self._unreachable()
        yield from self._out_of_range()

    def remarks(self) -> Iterator[SignatureFinding]:
        """What is doubtful."""
        yield from self._excluding_nothing()
        yield from self._without_value()
        yield from self._sometimes_out_of_range()
        yield from self._too_rare()
        yield from self._unused()
        yield from self._unfamiliar()
        yield from self._unknown()

    def _at(self, path: Path, message: str, hint: str) -> SignatureFinding:
        return SignatureFinding(message, line_of(self.lines, path), hint=hint)

    def _text(self, path: Path) -> str:
        """A formula within its table or item."""
        return f"{_key(path)}: {self.formulas[path].text!r}"

    def _unreachable(self) -> Iterator[SignatureFinding]:
        """Conditions that no number of processes meets, alone or together."""
        tried = f"1 to {MOST_PROCESSES} processes"
        if not self.runs.is_complete:
            tried = "a selection of process counts"
        if self.runs.threads.size > 1:
            tried += f" and 1 to {int(self.runs.threads[-1])} threads"
        for condition in self.runs.conditions:
            if not condition.holds.any():
                never = f"{_never(condition)} (tried {tried})"
                yield self._at(condition.path, never, "no run is possible")
        conflict = self.runs.first_conflict()
        if conflict is not None:
            condition, other = conflict
            partner = "the conditions before it"
            if other is not None:
                partner = f"{_spoken(other)} in line {line_of(self.lines, other.path)}"
            yield self._at(
                condition.path,
                f"{_never(condition)} together with {partner}",
                f"no run is possible (tried {tried})",
            )

    def _excluding_nothing(self) -> Iterator[SignatureFinding]:
        """Conditions that every run meets."""
        for condition in self.runs.conditions:
            if condition.path[0] == "limits" and condition.holds.all():
                nothing = f"{_spoken(condition)} excludes nothing"
                yield self._at(condition.path, nothing, "remove or correct it")

    def _out_of_range(self) -> Iterator[SignatureFinding]:
        """Formulas that give nothing sensible for any possible run."""
        useless: set[str] = set()  # names that come from such a formula: their uses need no mention
        for result in self.results:
            fault = _fault(result)
            if fault is None or useless & closure(self.signature, [self.formulas[result.path]]):
                continue
            if result.path[0] == "let":
                useless.add(str(result.path[1]))
            elif result.path[0] == "decomp":
                useless |= EXTENTS
            problem, hint = fault
            yield self._at(result.path, f"{self._text(result.path)} {problem}", hint)

    def _without_value(self) -> Iterator[SignatureFinding]:
        """Formulas that have no value for some of the possible runs."""
        for result in self.results:
            missing = ~np.isfinite(result.values)
            if missing.any() and not missing.all():
                yield self._at(
                    result.path,
                    f"{self._text(result.path)} has no finite value for {_where(result, missing)}",
                    "for example a division by zero; limits.require can exclude these runs",
                )

    def _sometimes_out_of_range(self) -> Iterator[SignatureFinding]:
        """Formulas whose value makes no sense for some of the possible runs."""
        for result in self.results:
            key = key_at(result.path)
            if key is None or key.domain is None:
                continue
            finite = np.isfinite(result.values)
            outside = finite & ~np.asarray(key.domain.holds(result.values), dtype=bool)
            if outside.any() and (finite & ~outside).any():
                yield self._at(
                    result.path,
                    f"{self._text(result.path)} is {result.values[outside][0]:g} "
                    f"for {_where(result, outside)}; must be {key.domain.text}",
                    "limits.require can exclude these runs",
                )

    def _too_rare(self) -> Iterator[SignatureFinding]:
        """Items whose turn does not come in any execution of their loop."""
        by_path = {result.path: result.values for result in self.results}
        for path, every in by_path.items():
            if path[-1] != "every":
                continue
            around = path[: max(index for index, part in enumerate(path) if part == "body")]
            # an inline body is inside the table of its loop, another one beside it
            counts = (
                one for one in by_path if one[-1] == "count" and around in (one[:-1], one[:-2])
            )
            loop = next(counts, None)  # none if its count depends on the machine
            if loop is not None and (every > by_path[loop]).all():
                yield self._at(
                    path,
                    f"{self._text(path)} exceeds the {self.formulas[loop].text!r} iterations of "
                    "the loop with these parameters",
                    "the item is never executed",
                )

    def _unused(self) -> Iterator[SignatureFinding]:
        """Parameters, constants and names of let that no formula uses."""
        used = {name for expression in self.formulas.values() for name in expression.names}
        named = [("params", name) for name in self.signature.params]
        named += [("constants", name) for name in self.signature.constants]
        named += [("let", name) for name, _ in self.signature.let]
        for path in named:
            if path[1] not in used:
                yield self._at(
                    path, f"{path[1]} is never used", "remove it, or use it in a formula"
                )

    def _unknown(self) -> Iterator[SignatureFinding]:
        """What is written as unknown: predictions need a value of it."""
        for one in self.signature.unknown:
            hint = "no prediction without a value"
            if one.is_name:
                hint += f": write one, or --set {one.label.partition('.')[2]}=VALUE"
            yield SignatureFinding(f'{one.label} is unknown ("{OPEN}")', one.line, hint=hint)

    def _unfamiliar(self) -> Iterator[SignatureFinding]:
        """Names of constructs and cache levels that machine profiles do not have."""
        for path in self.formulas:
            table, _, name = _key(path).partition(".")
            if table == "constructs" and name not in CONSTRUCTS:
                yield self._at(
                    path,
                    f"constructs: popmodel does not measure the overhead of {name!r}",
                    did_you_mean(name, CONSTRUCTS, f"known: {', '.join(CONSTRUCTS)}"),
                )
            if table == "bytes" and name and not _LEVEL.fullmatch(name):
                yield self._at(
                    path,
                    f"bytes: {name!r} is not a usual memory level",
                    "levels are MEM and L1, L2, ... as in the machine profile",
                )


def _spoken(condition: Condition) -> str:
    of_grid = condition.path[0] == "decomp"
    return f"the grid {condition.text}" if of_grid else f"require: {condition.text!r}"


def _never(condition: Condition) -> str:
    of_grid = condition.path[0] == "decomp"
    return f"{_spoken(condition)} {'never has P processes' if of_grid else 'never holds'}"


def _fault(result: ConstraintOutcome) -> tuple[str, str] | None:
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


def _where(result: ConstraintOutcome, those: NDArray[np.bool_]) -> str:
    """Name the runs by their threads if these alone decide, else by their processes."""
    threads = distinct(result.threads[those])
    decide = np.array_equal(np.isin(result.threads, threads), those)
    numbers = threads if decide else distinct(result.processes[those])
    some = ", ".join(f"{count:g}" for count in numbers[:3])
    return f"{'T' if decide else 'P'} = {some}{', ...' if numbers.size > 3 else ''}"


def in_order(findings: Iterable[SignatureFinding]) -> tuple[SignatureFinding, ...]:
    """Sort findings by line, each once: the two branches of ``if_fits`` may give the same one."""
    once = dict.fromkeys(findings)
    return tuple(sorted(once, key=lambda finding: (finding.line or 0, finding.column or 0)))


def _key(path: Path) -> str:
    """Name a formula within its table or item."""
    return label_of(path).partition(".")[2]
