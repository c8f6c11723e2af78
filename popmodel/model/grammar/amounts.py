"""Values of formulas at a point: evaluated, and refused in one line where they make no sense."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from popmodel.errors import UsageError
from popmodel.expressions import Expression, ExpressionError
from popmodel.expressions.elementary import Value, numbers
from popmodel.model.grammar.keys import Domain

_SHOWN = 60  # characters of a formula in a message


def evaluate(
    expression: Expression,
    values: Mapping[str, Value],
    what: str,
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> Value:
    """Compute a formula."""
    try:
        found: Value = expression.evaluate(values, functions)
    except ExpressionError as error:
        raise UsageError(
            f"{what} is {_text(expression)}, which {error.problem} ({_point(values)})", error.hint
        ) from None
    return found


def check(
    value: Value,
    domain: Domain | None,
    expression: Expression,
    values: Mapping[str, Value],
    what: str,
    outside: Callable[[str, float], None] | None = None,
) -> Value:
    """Refuse a value outside the domain of its formula, or leave draws of it at its ends."""
    if domain is None:
        return value
    holds = np.ravel(domain.holds(value))
    if holds.all():
        return value
    if outside is not None and holds[0]:
        outside(domain.text, float(1 - holds.mean()))
        return domain.nearest(numbers(value))
    bad = numbers(value).flat[np.flatnonzero(~holds)[0]]
    where = ", in a draw of the uncertain inputs"
    if "rank" in expression.names:
        where = ", on some ranks"
    raise UsageError(
        f"{what} is {_text(expression)} = {bad:g} at {_point(values)}{where * bool(holds[0])}; "
        f"must be {domain.text}",
        _advice(expression, values),
    )


def _advice(expression: Expression, values: Mapping[str, Value]) -> str:
    names = sorted(expression.names - {"P", "T"})
    known = ", ".join(f"{name} = {numbers(values[name]).flat[0]:.6g}" for name in names)
    return f"{known}: " * bool(known) + (
        "choose another split or other parameters, or correct the formula"
    )


def _text(expression: Expression) -> str:
    text = expression.text
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


def _point(values: Mapping[str, Value]) -> str:
    return f"P={values['P']:g} T={values['T']:g}"
